/**
 * The library that makes certificates, and its polyfill. `issue.ts` imports this file dynamically: in the
 * bundle, a CommonJS package has its names only if it is imported statically.
 */
import 'reflect-metadata';

export * as x509 from '@peculiar/x509';
