/** Use only the answer to what was asked last: one that comes late would show what was. */
export class Latest {
  #asked = 0;
  #used = 0;

  /**
   * Wait for an answer, and use it unless the same was asked again meanwhile.
   *
   * @template T
   * @param {Promise<T>} answer
   * @param {{use: (answer: T) => void, fail?: (error: Error) => void}} does
   * @returns {Promise<T | null>} The answer, used or not; null where there is none, or a newer one was used before it came.
   */
  async of(answer, { use, fail = () => {} }) {
    const number = ++this.#asked;
    try {
      const found = await answer;
      if (number < this.#used) return null;
      if (number === this.#asked) {
        this.#used = number;
        use(found);
      }
      return found;
    } catch (error) {
      if (number === this.#asked) fail(error);
      return null;
    }
  }
}
