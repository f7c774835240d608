/**
 * The library that makes certificates, and its polyfill. A file of its own, which `issue.ts` imports dynamically: in the bundle, a CommonJS
 * package has its names only if it is imported statically.
 */
import 'reflect-metadata';

export * as x509 from '@peculiar/x509';
