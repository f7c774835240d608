/** Image references, parsed and normalised as the kubelet and containerd do. */
export interface Reference {
  /** Registry domain, such as `docker.io` or `localhost:5000`. It is also containerd's namespace. */
  readonly domain: string;
  /** Path of the repository, such as `library/nginx`. */
  readonly path: string;
  /** `domain/path`: the key for credentials. */
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: string;
}
