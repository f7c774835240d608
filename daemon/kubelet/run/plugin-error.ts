/** Failures of plugins, and the outcome that is counted, if any. */
const outcomes = {
  missing: 'refused',
  unsafe: 'refused',
  'not-executable': 'refused',
  'not-started': 'failed',
  failed: 'failed',
  timeout: 'timeout',
  'too-much-output': 'failed',
  'bad-response': 'failed',
  stopped: undefined,
  'no-token': undefined,
} as const;

export type PluginErrorCode = keyof typeof outcomes;

/** Messages never quote the standard output of a plugin. */
export class PluginError extends Error {
  override readonly name = 'PluginError';
  readonly code: PluginErrorCode;
  /** What a program that failed had printed. It may hold secrets. */
  readonly stdout: Buffer | undefined;
  constructor(code: PluginErrorCode, message: string, stdout?: Buffer) {
    super(message);
    this.code = code;
    this.stdout = stdout;
  }
}

export function outcomeOf(code: PluginErrorCode | undefined) {
  return code === undefined ? 'ok' : outcomes[code];
}
