/** Pushes content to a real registry, with the requests of the distribution specification. */
import { once } from 'node:events';
import { request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { Content } from '../../support/registry/content.ts';

/** @param host `127.0.0.1:port` @throws Error if the registry refuses a part */
export async function push(
  { host, ca }: { readonly host: string; readonly ca: string },
  repository: string,
  tag: string,
  content: Content,
): Promise<Content> {
  async function send(method: string, path: string, body: Uint8Array = Buffer.alloc(0), type?: string) {
    const headers = { 'content-length': body.length, ...(type !== undefined && { 'content-type': type }) };
    const sent = request(new URL(path, `https://${host}`), { method, ca, headers, agent: false }).end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    const { statusCode = 0 } = response;
    if (statusCode >= 300) throw new Error(`${method} ${path}: ${statusCode}`);
    return response.headers;
  }

  async function put(part: Content, name: string): Promise<void> {
    for (const child of part.children) await put(child, child.digest);
    for (const blob of part.blobs) {
      const { location = '' } = await send('POST', `/v2/${repository}/blobs/uploads/`);
      const url = new URL(location, `https://${host}`);
      url.searchParams.set('digest', blob.digest);
      await send('PUT', url.href, blob.bytes, 'application/octet-stream');
    }
    await send('PUT', `/v2/${repository}/manifests/${name}`, part.bytes, part.mediaType);
  }

  await put(content, tag);
  return content;
}
