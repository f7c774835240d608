/** Why a server cannot start. Messages name the address or the file, and what to change. */
export class ServingError extends Error {
  override readonly name = 'ServingError';
}
