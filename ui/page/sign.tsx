/** Knapper's sign, as elements: the file of the same picture is the browser's tab's alone, so that it is asked for once. */

import type { JSX } from "preact";

const FACES: readonly (readonly [fill: string, path: string])[] = [
  ["#1d7a72", "M24 3 40 17 36 36 23 45 10 33 8 16Z"],
  ["#2f9d92", "M24 3 40 17 26 22Z"],
  ["#5cc4b8", "M24 3 26 22 8 16Z"],
  ["#176159", "M26 22 36 36 23 45Z"],
  ["#2b9287", "M8 16 26 22 23 45 10 33Z"],
];

export function Sign({ size }: { size: number }): JSX.Element {
  return (
    <svg class="k-sign" width={size} height={size} viewBox="0 0 48 48" aria-hidden="true">
      {FACES.map(([fill, path]) => (
        <path key={path} fill={fill} d={path} />
      ))}
    </svg>
  );
}
