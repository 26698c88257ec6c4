"""The index of architectures against its own size: matching, bytes, and what an addition costs."""

from lineage import SPACES
from lineage_index import Samples, words_of, yes

GOAL_ADD_US = 2_000


def row(samples, store, space, count, facts, args):
    ours = samples.query(store, space, 1, args.queries)
    work = samples.ask("work", store, *words_of(space), args.queries)
    added = samples.ask("add", store, *words_of(space), args.additions)
    each = [f"{bytes_ / count:,.0f}" for bytes_ in (facts["row_bytes_per_version"] * count, facts["used_bytes"])]
    print(f"| {space} | {count:,} | {ours['p50_us']:.0f} µs | {ours['mean_us']:.0f} µs | {ours['p99_us']:.0f} µs | "
          f"{work['p50']:.0f} | {work['mean']:.0f} | {work['p99']:.0f} | {work['max']:.0f} | {each[0]} | {each[1]} | "
          f"{facts['file_bytes_per_version']:,.0f} | {added['before_p50_us']:.0f} µs | {added['before_p99_us']:.0f} µs | "
          f"{added['p50_us']:.0f} µs | {added['p99_us']:.0f} µs | "
          f"{added['max_us'] / 1e3:.1f} ms | ≤ 2 ms | {yes(added['max_us'] <= GOAL_ADD_US)} | "
          f"{added['commit_p50_us'] / 1e3:.1f} ms |", flush=True)


def run(build, directory, args):
    print(f"\nThe index alone is filled, by the code that a publish runs, many versions a transaction. {args.queries:,} queries of"
          f" one client. An addition is the architecture's part of a publish: what it reads before the transaction, and what it does"
          f" inside; {args.additions:,} are added one by one, and the commit after each syncs the index to disk. Bytes are those a version takes: keys and"
          " values, pages in use, and the file. Visits are the rows of the index that the same queries look at: items,"
          " places of classes, classes." + (" Times are the thread's on the processor." if args.cpu else "") + "\n")
    print("| space | versions | match p50 | mean | p99 | visits p50 | mean | p99 | most | rows | pages | file | before p50 | p99 | inside p50 | p99 | slowest | goal | met"
          " | commit p50 |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    samples = Samples(build, directory, args)
    counts = args.versions or ((1_000, 10_000) if args.quick else (10_000, 100_000, 1_000_000))
    for space in args.space or SPACES:
        for count in counts:
            store, facts = samples.filled(space, count)
            if not args.fill:
                row(samples, store, space, count, facts, args)
            samples.done_with(store)
