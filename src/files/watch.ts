/** Contract of watching files: acts on content, not on events. */
export interface Watcher {
  close(): Promise<void>;
}
