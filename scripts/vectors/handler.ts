/**
 * A handler of a vector kind. It gets the case's `input` and returns the actual value in the shape of
 * `expected`; undefined members do not count. Do not catch errors of the product: a thrown error means
 * `{ok: false, error: <message>}`. So a handler is one call of the product plus renaming. Errors of
 * JavaScript itself (TypeError and others) are defects, never a result. What the product does not have is
 * never copied from `expected`: the handler says `notCompared`, and the run counts it.
 */
export interface Vector {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly input: Input;
  readonly expected: unknown;
}

export type Input = Readonly<Record<string, unknown>>;

/** A member that the product does not have, or a case in which it differs on purpose. */
export const notCompared = Symbol('not compared');

/** May return a promise. The case itself is for kinds with input in `expected`. */
export type Handler = (input: Input, vector: Vector) => unknown;

/** Handlers by kind. */
export type Handlers = Readonly<Record<string, Handler>>;
