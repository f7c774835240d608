/** Contract of the API client: raw JSON over one keep-alive pool. Paths are API paths such as `/api/v1/nodes`. */
export interface KubeClient {
  /** @throws KubeError with `code` by status (`not-found`, `forbidden`, `conflict`, `gone`, `unavailable`, …) */
  get<T>(path: string, options: { readonly signal: AbortSignal }): Promise<T>;
  close(): void;
}

/** A cache of one kind of object, kept true by list and watch. */
export interface Reflector<T> {
  get(namespace: string, name: string): T | undefined;
  values(): Iterable<T>;
  /** Resolves after the first complete list. */
  ready(signal: AbortSignal): Promise<void>;
  onChange(listener: () => void): void;
  stop(): void;
}
