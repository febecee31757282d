/** Next steps in a person's words. */

/** What the server says to programs, which the page or plugin does for a person. */
const FOR_PERSONS: Readonly<Record<string, string>> = {
  "/openapi.json lists what there is": "the server may be of another version",
  "send it as 'Authorization: Bearer TOKEN'; `knap token` tells where it lies": "sign in again, or connect this device anew",
};

/** Return a hint of the server as it is shown to a person. */
export function hintForPerson(hint: string): string {
  return Object.hasOwn(FOR_PERSONS, hint) ? (FOR_PERSONS[hint] ?? hint) : hint;
}
