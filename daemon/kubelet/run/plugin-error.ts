/** Why a plugin gave no credentials. Messages never quote its standard output. */
export type PluginErrorCode =
  | 'missing'
  | 'unsafe'
  | 'not-executable'
  | 'not-started'
  | 'failed'
  | 'timeout'
  | 'too-much-output'
  | 'stopped'
  | 'bad-response'
  | 'no-token';

/** A later run may succeed. */
const temporaryCodes: ReadonlySet<PluginErrorCode> = new Set([
  'failed',
  'timeout',
  'stopped',
  'not-started',
  'no-token',
]);

export class PluginError extends Error {
  readonly code: PluginErrorCode;
  readonly temporary: boolean;
  /** Name of the plugin. */
  readonly where: string;
  constructor(code: PluginErrorCode, where: string, message: string) {
    super(message);
    this.name = 'PluginError';
    this.code = code;
    this.where = where;
    this.temporary = temporaryCodes.has(code);
  }
}
