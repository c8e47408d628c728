// TypeScript: types, enums, generics, classes with parameter properties.
import { check } from 'k6';
import type { Options } from 'k6/options';
interface Item { id: number; name?: string }
enum Level { Low, High = 5, Higher }
type Pair<T> = [T, T];
class Box<T extends Item> {
  private readonly seen: string[] = [];
  constructor(public item: T, protected count = 1) {}
  name(): string | undefined { return this.item?.name!; }
  static of(id: number): Box<Item> { return new Box<Item>({ id } as Item); }
}
export const options: Options = { iterations: 2 } satisfies object;
export default function (): void {
  const pair: Pair<number> = [1, 2];
  const sum = pair.reduce((a: number, b: number): number => a + b, 0);
  check(Box.of(3), { item: (b: Box<Item>) => b.item.id === 3 && b.name() === undefined });
  check(sum as unknown, { sum: (s) => s === 3, level: () => Level.Higher === 6 && Level[0] === 'Low' });
}
