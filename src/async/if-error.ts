/** A handler for `catch`: `instead` handles an error of this class. Other errors are thrown again. */
export function ifError<E extends Error, R>(
  expected: abstract new (...args: never[]) => E,
  instead: (error: E) => R,
): (error: unknown) => R {
  return (error) => {
    if (error instanceof expected) return instead(error);
    throw error;
  };
}
