import t from 'tap';
import {
  acceptManifests,
  bareMediaType,
  documentKind,
  isImageConfig,
  isVague,
} from '../../../src/registry/manifests/media-types.ts';
import { mediaTypes } from '../../support/registry/content.ts';

t.test('kinds of documents', async (t) => {
  t.equal(documentKind(mediaTypes.ociIndex), 'index');
  t.equal(documentKind(mediaTypes.dockerList), 'index');
  t.equal(documentKind(mediaTypes.ociManifest), 'manifest');
  t.equal(documentKind(mediaTypes.dockerManifest), 'manifest');
  t.equal(documentKind(mediaTypes.schema1), 'schema1');
  t.equal(documentKind(mediaTypes.ociConfig), undefined);
  t.ok(isImageConfig(mediaTypes.ociConfig));
  t.ok(isImageConfig(mediaTypes.dockerConfig));
  t.notOk(isImageConfig(mediaTypes.helmConfig));
  for (const type of ['', '*/*', 'application/octet-stream', 'application/json', 'text/plain'])
    t.ok(isVague(type), type);
  t.notOk(isVague('text/html'));
});

t.test('media types without parameters', async (t) => {
  t.equal(bareMediaType(undefined), '');
  t.equal(bareMediaType(' Text/Plain ; charset=utf-8; x=";"'), 'text/plain');
});

t.test('all four kinds are accepted, and anything', async (t) => {
  for (const type of [
    mediaTypes.ociIndex,
    mediaTypes.dockerList,
    mediaTypes.ociManifest,
    mediaTypes.dockerManifest,
  ]) {
    t.ok(acceptManifests.split(', ').includes(type), type);
  }
  t.match(acceptManifests, /, \*\/\*$/);
});
