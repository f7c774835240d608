/** Sizes of repetitive tests: full with `ARCHWRIGHT_EXHAUSTIVE=1` (`npm run test:exhaustive`). */

export const isExhaustive = process.env['ARCHWRIGHT_EXHAUSTIVE'] === '1';

export function sized(usual: number, full: number): number {
  return isExhaustive ? full : usual;
}
