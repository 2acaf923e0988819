/** Small file systems that are really full soon; mounting them takes root. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

export type DiskKind = 'tmpfs' | 'ext4'

/** ext4 takes some of it for its journal. */
const DISK_BYTES: Readonly<Record<DiskKind, number>> = { tmpfs: 6 * 2 ** 20, ext4: 12 * 2 ** 20 }

/**
 * Mounts a small disk while `use` runs, which must have closed all files on it when it settles.
 * Without the right to mount, the test is skipped.
 */
export async function withSmallDisk(
  t: TestContext,
  kind: DiskKind,
  use: (dir: string) => Promise<void>,
): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'bifrost-disk-'))
  const disk = join(scratch, 'disk')
  mkdirSync(disk)
  try {
    const why = kind === 'tmpfs' ? mountMemory(disk) : mountImage(scratch, disk)
    if (why !== undefined) {
      t.skip(`No small disk could be mounted: ${why}`)
      return
    }
    try {
      await use(join(disk, 'store'))
    } finally {
      run('umount', '--lazy', disk)
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function mountMemory(disk: string): string | undefined {
  return run('mount', '-t', 'tmpfs', '-o', `size=${DISK_BYTES.tmpfs}`, 'tmpfs', disk)
}

function mountImage(scratch: string, disk: string): string | undefined {
  const image = join(scratch, 'image')
  writeFileSync(image, new Uint8Array(DISK_BYTES.ext4))
  return run('mkfs.ext4', '-q', image) ?? run('mount', '-o', 'loop', image, disk)
}

/** Runs a command; returns why it failed, if it did. */
function run(command: string, ...args: string[]): string | undefined {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  if (error !== undefined) return error.message
  return status === 0 ? undefined : stderr.trim()
}
