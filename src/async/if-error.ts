/** For `catch` of a promise: what `instead` makes of an error of this class. Every other error is thrown again. */
export function ifError<E extends Error, R>(
  expected: abstract new (...args: never[]) => E,
  instead: (error: E) => R,
): (error: unknown) => R {
  return (error) => {
    if (error instanceof expected) return instead(error);
    throw error;
  };
}
