import { describe, expect, it } from "vitest";
import type { ServerEvent } from "../../client";
import { explain, ownWords } from "./problems";
import { endTexts, isOver, newTurn, readMessages, reduce, settle, type Turn } from "./turn";

const event = (name: string, data: object): ServerEvent => ({ id: 0, event: name, data: data as Record<string, unknown> });
const play = (turn: Turn, ...events: [string, object][]): Turn => events.reduce((now, [name, data]) => reduce(now, event(name, data)), turn);
const begun = () => play(newTurn("chat", "When?", "2026-01-01"), ["start", { turn_id: "t1", session_id: "s" }]);

describe("a turn that runs", () => {
  it("keeps what the model says between calls as steps, and its last text as the answer", () => {
    const turn = play(
      begun(),
      ["text", { text: "Let me ", step: 1 }],
      ["text", { text: "look.", step: 1 }],
      ["tool_call", { id: "c1", name: "search_vault", arguments: { query: "rain" } }],
      ["tool_result", { id: "c1", name: "search_vault", success: true, summary: "2 results", answer: { success: true } }],
      ["text", { text: "Every evening", step: 2 }],
      ["done", { state: "complete", answer: "Every evening.", citations: [], model: "m", usage: { requests: 2, input_tokens: 5, output_tokens: 3, cost_usd: null } }],
    );

    expect(turn.steps).toEqual([
      { kind: "text", text: "Let me look." },
      { kind: "call", id: "c1", name: "search_vault", state: "good", summary: "2 results", given: { query: "rain" }, answer: { success: true } },
    ]);
    expect([turn.text, turn.state, turn.id, turn.spent?.cost_usd]).toEqual(["Every evening.", "complete", "t1", null]);
    expect(isOver(turn)).toBe(true);
  });

  it("isn't doubled where it is told anew from its beginning", () => {
    const first = play(begun(), ["text", { text: "One", step: 1 }], ["tool_call", { id: "c", name: "x", arguments: {} }]);
    const again = play(first, ["start", { turn_id: "t1", message: "When?" }], ["text", { text: "One", step: 1 }]);

    expect([again.text, again.steps, again.question, again.state]).toEqual(["One", [], "When?", "running"]);
  });

  it("keeps what came before an answer to its question", () => {
    const asked = play(newTurn("task", "Water it", ""), ["start", { run_id: "r" }], ["round", { number: 1, limit: 5 }], [
      "outcome",
      { run_id: "r", state: "asked", answer: "", pipeline: {}, question: { question: "Which?", options: ["a"] } },
    ]);
    const resumed = play({ ...asked, asked: { question: "Which?", options: ["a"], answer: "a" } }, ["start", { run_id: "r", task: "Water it" }]);

    expect(asked.state).toBe("asked");
    expect(resumed.steps).toEqual([{ kind: "round", number: 1, limit: 5 }]);
    expect(resumed.asked?.answer).toBe("a");
    expect(play(resumed, ["outcome", { run_id: "r", state: "complete", answer: "Done.", pipeline: {} }]).text).toBe("Done.");
  });

  it("says of a call without an answer that there was none, and takes a result without its call", () => {
    const open = play(begun(), ["tool_call", { id: "c", name: "slow", arguments: {} }], ["done", { state: "cancelled", answer: "" }]);
    const lone = play(begun(), ["tool_result", { id: "x", name: "late", success: false, summary: "no" }]);

    expect(open.steps[0]).toMatchObject({ state: "broken" });
    expect(lone.steps).toMatchObject([{ name: "late", state: "failed" }]);
  });

  it("survives events of any shape", () => {
    const odd = [null, 1, "x", [], {}, { state: 7, answer: {}, citations: "no", proposals: [null, 3], question: [], pipeline: { scout: 1 }, usage: "u", error: true }];
    for (const name of ["start", "text", "round", "tool_call", "tool_result", "proposal", "question", "usage", "error", "progress", "selection", "sources", "context", "navigate", "notice", "gap", "done", "outcome", "other", "__proto__", "constructor"]) {
      for (const data of odd) expect(() => reduce(begun(), { id: 1, event: name, data: data as never })).not.toThrow();
    }
  });

  it("tells what a task found, once for each", () => {
    const turn = play(
      newTurn("task", "x", ""),
      ["progress", { phase: "scout", state: "started", text: "looking" }],
      ["progress", { phase: "scout", state: "ended", text: "notes chosen: 1" }],
      ["selection", { scout: { selected_notes: [{ path: "A.md", why: "semantic 82%", reason: "names it", sources: ["linked", "semantic"], semantic_score: 0.82 }], confidence: "done", ended: "said" } }],
      ["notice", { text: "one" }],
      ["notice", { text: "one" }],
      ["navigate", { path: "A.md" }],
      ["outcome", { state: "complete", answer: "Yes", pipeline: {}, notices: ["one", "two"], edit_results: { failures: [{ file: "No.md", error: "no line 3" }] }, proposals: ["p"] }],
    );

    expect(turn.phases).toEqual([{ phase: "scout", state: "ended", text: "notes chosen: 1" }]);
    expect(turn.selection?.notes).toEqual([{ path: "A.md", why: "semantic 82%", reason: "names it", tokens: null, sources: ["linked", "semantic"], score: 0.82 }]);
    expect(turn.notices).toEqual(["one", "two", "No.md can't be edited: no line 3"]);
    expect([turn.opened, turn.proposals]).toEqual([["A.md"], ["p"]]);
  });
});

describe("a turn that a session has kept", () => {
  it("is paired with its answer, and its steps have no details yet", () => {
    const trace = [{ kind: "text", text: "I look." }, { kind: "call", id: "c", name: "read_file", success: false, summary: "no" }];
    const [first, second] = readMessages([
      { role: "user", content: "a", number: 1, at: "x" },
      { role: "assistant", content: "A", number: 1, at: "x", outcome: { answer: "A", state: "complete", trace } },
      { role: "user", content: "b", number: 2, at: "y" },
    ]);

    expect(first).toMatchObject({ question: "a", number: 1, text: "A", kind: "chat" });
    expect(first?.steps).toEqual([{ kind: "text", text: "I look." }, { kind: "call", id: "c", name: "read_file", state: "failed", summary: "no" }]);
    expect(second).toMatchObject({ question: "b", number: 2, text: "" });
  });

  it("says that no answer came where it failed, and each citation that was removed once", () => {
    const lost = { citation: "[[A]]", reason: "there is no note 'A'" };
    const [failed, cited] = readMessages([
      { role: "user", content: "a", number: 1, at: "x" },
      { role: "assistant", content: "", number: 1, at: "x", outcome: { answer: "", state: "failed" } },
      { role: "user", content: "b", number: 2, at: "y" },
      { role: "assistant", content: "B", number: 2, at: "y", outcome: { answer: "B", state: "complete", removed: [lost, { ...lost, citation: "[[B]]" }, lost] } },
    ]);

    expect(endTexts(failed as Turn)).toEqual(["No answer came."]);
    expect(endTexts(cited as Turn)).toEqual([
      "A citation couldn't be verified and was removed, 2 times: [[A]] (there is no note 'A')",
      "A citation couldn't be verified and was removed: [[B]] (there is no note 'A')",
    ]);
  });

  it("doesn't say a question twice: as the answer, and as what is asked", () => {
    const asked = { ...newTurn("chat", "x", ""), asked: { question: "Which?", options: [], answer: "" } };

    expect(settle(asked, { state: "asked", answer: "Which?" }).text).toBe("");
  });
});

describe("what went wrong", () => {
  const of = (code: string, status = 0) => explain({ code, message: "", hint: "" }, status).kind;

  it("is told by its kind, each with a way out", () => {
    expect(["offline", "no_model", "model_key", "session_busy", "too_many_turns", "note_hidden", "budget_spent", "model_failed", "unreachable", "no_session"].map((code) => of(code))).toEqual([
      "offline", "setup", "setup", "busy", "busy", "refused", "limit", "model", "model", "gone",
    ]);
    expect([of("constructor"), of("x", 403), of("x", 409), of("x", 502)]).toEqual(["other", "refused", "busy", "model"]);
    expect(explain({ code: "no_model", message: "", hint: "" }).ways[0]).toBe("settings");
  });

  it("has the title and the settings of its code where its kind would mislead", () => {
    const told = (code: string) => explain({ code, message: "", hint: "" });
    expect(told("web_off")).toMatchObject({ title: "Web access is off", ways: ["settings"], section: "web" });
    expect(told("budget_spent").section).toBe("limits");
    expect(told("busy")).toMatchObject({ title: "The server is busy", ways: ["again"] });
    expect(told("session_changed").title).toBe("This conversation was continued elsewhere");
    expect(told("no_model").section).toBe("models");
  });

  it("divides our words from those of the model's server", () => {
    expect(ownWords('m: its server answered with status 400; it says: "too "long"; sorry"')).toEqual({ said: "m: its server answered with status 400", quoted: 'too "long"; sorry' });
    expect(ownWords("plain")).toEqual({ said: "plain", quoted: "" });
  });
});
