/** The promises that every loglet and its provider make, as one suite that runs over all of them. */
import { describe } from 'node:test'
import { appendContract } from './loglet-contract-append.ts'
import { commandContract } from './loglet-contract-commands.ts'
import { providerContract } from './loglet-contract-provider.ts'
import { readContract } from './loglet-contract-read.ts'
import type { OpenProvider } from './loglet-probe.ts'

/** Runs the contract suite over the providers that `open` opens. */
export function runLogletContract(name: string, open: OpenProvider): void {
  describe(`${name} loglet: appends`, () => appendContract(open))
  describe(`${name} loglet: reads`, () => readContract(open))
  describe(`${name} loglet: trims, seals and watches`, () => commandContract(open))
  describe(`${name} provider`, () => providerContract(open))
}
