/** Pair this vault with a server: by a link of `knap connect`, or by typing what it shows. */

import { Modal, Notice, Setting } from "obsidian";
import { failureOf } from "../../ui/client/transport";
import { sentence } from "../../ui/parts/format";
import { describeFailure } from "./connection";
import type KnapperPlugin from "./main";

export interface Offer {
  address: string;
  code: string;
}

/**
 * Asks before a server is trusted, also when a link brought everything: any page can open such a link, and whoever is
 * connected reads what is asked and may propose changes.
 */
export class PairDialog extends Modal {
  private problem!: HTMLElement;

  constructor(
    private readonly plugin: KnapperPlugin,
    private readonly offer: Offer,
  ) {
    super(plugin.app);
  }

  override onOpen(): void {
    this.setTitle("Connect this vault to Knapper");
    const { contentEl, offer } = this;
    contentEl.addClass("knapper", "knapper-pair");
    const earlier = this.plugin.connection.pairing;
    contentEl.createEl("p", {
      text: offer.code
        ? "Connect only if you ran knap connect on your own computer just now, and the address and code are the same there."
        : "Run knap connect on your computer, and type the address and code that it shows.",
    });
    if (earlier) contentEl.createEl("p", { text: `This takes the place of the connection with ${earlier.address}.` });
    new Setting(contentEl).setName("Address").addText((text) =>
      text
        .setPlaceholder("http://127.0.0.1:25627")
        .setValue(offer.address)
        .onChange((value) => (offer.address = value)),
    );
    new Setting(contentEl).setName("Code").addText((text) => {
      text
        .setPlaceholder("ABCD-EFGH")
        .setValue(offer.code)
        .onChange((value) => (offer.code = value));
      text.inputEl.addEventListener("keydown", (event) => {
        if (event.key === "Enter") void this.connect();
      });
    });
    this.problem = contentEl.createDiv({ cls: "knapper-problem", attr: { role: "alert" } });
    new Setting(contentEl)
      .addButton((made) => made.setButtonText("Cancel").onClick(() => this.close()))
      .addButton((made) =>
        made
          .setButtonText("Connect")
          .setCta()
          .onClick(() => void this.connect()),
      );
  }

  override onClose(): void {
    this.contentEl.empty();
  }

  private async connect(): Promise<void> {
    this.problem.setText("");
    try {
      const { vault } = await this.plugin.connection.pair(this.offer.address, this.offer.code);
      this.close();
      new Notice(`Paired with the vault "${vault}"`);
    } catch (error) {
      this.problem.setText(sentence(describeFailure(failureOf(error))));
    }
  }
}
