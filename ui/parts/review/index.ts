export { DecidedProposals, Restricted, trust, WaitingProposals, WaitingQuestions, type WaitingQuestion } from "./list";
export { Difference, LineDifference, type Way } from "./difference";
export { Journal, RANGES, type FileDifference, type UndoPreview } from "./journal";
export { JournalView } from "./journalview";
export * from "./model";
export { ChangePlot } from "./plot";
export { NoteLink, ProposalActs, ProposalView, type Origin } from "./proposal";
export { ProposalReview, type ReviewOptions } from "./review";
export { ReviewList } from "./waiting";
