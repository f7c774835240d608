/** The error of this folder's text parsers. */

/**
 * An image reference that the kubelet would refuse too (`InvalidImageName`): the pod can never pull it. `message` is the
 * text that distribution/reference gives, so that it can be compared with the kubelet's event.
 */
export class InvalidReference extends Error {
  readonly code = 'invalid-reference';
  /** Asking again cannot help: the text itself is wrong. */
  readonly temporary = false;
  constructor(message: string) {
    super(message);
    this.name = 'InvalidReference';
  }
}
