/** Plugin failures: whether a later run may succeed, and the counted outcome, if any. */
const codes = {
  missing: { temporary: false, outcome: 'refused' },
  unsafe: { temporary: false, outcome: 'refused' },
  'not-executable': { temporary: false, outcome: 'refused' },
  'not-started': { temporary: true, outcome: 'failed' },
  failed: { temporary: true, outcome: 'failed' },
  timeout: { temporary: true, outcome: 'timeout' },
  'too-much-output': { temporary: false, outcome: 'failed' },
  'bad-response': { temporary: false, outcome: 'failed' },
  stopped: { temporary: true, outcome: undefined },
  'no-token': { temporary: true, outcome: undefined },
} as const;

export type PluginErrorCode = keyof typeof codes;

/** Messages never quote the standard output of a plugin. */
export class PluginError extends Error {
  override readonly name = 'PluginError';
  readonly code: PluginErrorCode;
  readonly temporary: boolean;
  readonly where: string;
  /** What a program that failed had printed. It may hold secrets. */
  readonly stdout: Buffer | undefined;
  constructor(code: PluginErrorCode, where: string, message: string, stdout?: Buffer) {
    super(message);
    this.code = code;
    this.where = where;
    this.stdout = stdout;
    this.temporary = codes[code].temporary;
  }
}

export function outcomeOf(code: PluginErrorCode | undefined) {
  return code === undefined ? 'ok' : codes[code].outcome;
}
