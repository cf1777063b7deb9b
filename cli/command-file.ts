import type { Command } from 'commander';
import type { Product } from '../tenancy/product.ts';

/** The products of the installation. Only some commands need them, and loading them takes as long as many a command. */
export type LoadProducts = () => Promise<readonly Product[]>;

/** Adds commands to the program. */
export type Commands = (program: Command, products: LoadProducts) => void;

/** A file of commands. It is loaded only when one of them is called, or when the help lists all. */
export interface CommandFile {
  /** The words that call them. */
  names: readonly string[];
  load: () => Promise<Commands>;
}
