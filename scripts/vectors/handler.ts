/**
 * What a handler of a vector kind is.
 *
 * It gets the case's `input` and gives the actual value in the shape of `expected`; members that are undefined do not count.
 * If the product refuses an input, do not catch its error: a thrown error stands for `{ok: false, error: <message>}`. Only the
 * members that `expected` names are compared. So a handler is one call of the product plus renaming. The language's own errors
 * (TypeError and others) are defects, never an answer.
 */
export interface Vector {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly input: Input;
  readonly expected: unknown;
}

export type Input = Readonly<Record<string, unknown>>;

/** May give a promise. The case itself is there for kinds whose question stands partly in `expected`. */
export type Handler = (input: Input, vector: Vector) => unknown;

/** Handlers by kind. */
export type Handlers = Readonly<Record<string, Handler>>;
