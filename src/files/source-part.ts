/** Parts of a source, such as files and plugins, as `agent --check` and `inspect --verbose` show them. */

/**
 * What became of a part of a source: it counts (`used`), it is there and does not (`unused`), it is not there (`absent`), or it is
 * there and could not be used (`left-out`).
 */
export type SourcePartState = 'used' | 'unused' | 'absent' | 'left-out';

/** A part of a source, such as a file or a plugin, for people. Never holds a secret. */
export interface SourcePart {
  /** A path or a name. */
  readonly where: string;
  readonly state: SourcePartState;
  /** What was found, or why it is left out. */
  readonly what: string;
  /** What the kubelet or containerd would do differently with it, one sentence each. */
  readonly differs?: readonly string[] | undefined;
}
