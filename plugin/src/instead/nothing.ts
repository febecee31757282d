/** In the place of markdown-it's rules that are switched off. */

export default function nothing(): boolean {
  return false;
}

/** Of `uc.micro`: punctuation and symbols. */
export const P = /\p{P}/u;
export const S = /\p{S}/u;
