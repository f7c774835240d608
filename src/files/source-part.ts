/** Parts of a source, such as files and plugins, as `agent --check` and `inspect --verbose` show them. */

/**
 * - `used`: in force
 * - `unused`: present, but another part takes precedence
 * - `absent`: not present
 * - `left-out`: present, but cannot be used
 */
export type SourcePartState = 'used' | 'unused' | 'absent' | 'left-out';

/** Contains no secret. */
export interface SourcePart {
  /** A path or a name. */
  readonly where: string;
  readonly state: SourcePartState;
  /** The content, or the reason why it is left out. */
  readonly what: string;
  /** How the kubelet or containerd treats it differently, one sentence each. */
  readonly differs?: readonly string[] | undefined;
}

export function part(
  where: string,
  state: SourcePartState,
  what: string,
  differs?: readonly string[],
): SourcePart {
  return { where, state, what, ...(differs && { differs }) };
}

export function leftOut(
  problems: readonly { readonly origin: string; readonly message: string }[],
): readonly SourcePart[] {
  return problems.map(({ origin, message }) => part(origin, 'left-out', message));
}
