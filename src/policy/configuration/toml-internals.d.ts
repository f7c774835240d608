/** The two steps of `toml`'s `parse`, which has no types for them. */
declare module 'toml/lib/parser.js' {
  import type { ParseOptions } from 'toml';

  export interface TomlNode {
    /** `Assign`, `ObjectPath` and `ArrayPath` are lines of a document; the rest are values. */
    readonly type: string;
    readonly offset: number;
    /** Only `Assign` and `InlineTableValue` have it. */
    readonly key: readonly string[];
    /** Keys of a header; a node or nodes, or a plain value. */
    readonly value: unknown;
  }

  const parser: { parse(text: string, options?: ParseOptions): readonly TomlNode[] };
  export default parser;
}

declare module 'toml/lib/compiler.js' {
  import type { ParseOptions } from 'toml';
  import type { TomlNode } from 'toml/lib/parser.js';

  const compiler: {
    compile(
      nodes: readonly TomlNode[],
      text: string,
      options?: ParseOptions,
    ): Readonly<Record<string, unknown>>;
  };
  export default compiler;
}
