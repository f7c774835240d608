/** Sizes of tests that repeat one thing many times: small in each run, full in `npm run test:exhaustive`. */

const exhaustive = process.env['ARCHWRIGHT_EXHAUSTIVE'] === '1';

export function sized(usual: number, full: number): number {
  return exhaustive ? full : usual;
}
