/** A failure of the demo; the message is for people. */
export class DemoError extends Error {
  readonly code = 'demo';
  readonly temporary = false;
  readonly where = 'examples/demo';
  constructor(message: string) {
    super(message);
    this.name = 'DemoError';
  }
}
