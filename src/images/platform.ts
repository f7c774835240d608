/**
 * Platforms: what one image manifest runs on, `os/architecture[/variant]`, normalised as containerd does, so that
 * spellings of the same thing (`aarch64`, `arm64/v8`) compare equal.
 */
export interface Platform {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string;
}
