/** Keys of stores that sort bytes: 8 bytes, big-endian, so that records stand in order. */

const KEY_BYTES = 8

export function keyOf(lsn: number): Buffer {
  const key = Buffer.allocUnsafe(KEY_BYTES)
  key.writeUInt32BE(Math.floor(lsn / 0x1_0000_0000), 0)
  key.writeUInt32BE(lsn >>> 0, 4)
  return key
}

export interface Put {
  readonly type: 'put'
  readonly key: Buffer
  readonly value: Uint8Array
}

export function putsOf(payloads: readonly Uint8Array[], firstKey: number): Put[] {
  return payloads.map((value, index) => ({ type: 'put', key: keyOf(firstKey + index), value }))
}
