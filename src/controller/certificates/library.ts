/**
 * The library that makes certificates, with what it needs before it is loaded. A file of its own, to be loaded as a whole when it is
 * needed: a package of CommonJS has its names in the bundle only where it is imported statically.
 */
import 'reflect-metadata';

export * as x509 from '@peculiar/x509';
