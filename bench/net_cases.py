"""The rows of part `together` of the net bench, by the names that the command line uses."""

TABLES = ["at-once", "best", "one-node", "serving"]
NODES = {8: 200, 16: 100}  # nodes that read at once -> Mbit/s of each link, each way
OPTIONS = {"default": None, "fetch": "cold=fetch", "stream": "cold=stream"}  # of the mount
WAYS = {"cat": "one file by cat", "load_file": "one file by load_file", "shards": "32 shards in turn by cat"}
LINKS = {1: 4, 5: 16, 20: 64, 100: 256, 1000: 1024, 10000: 1024}  # Mbit/s of the links of one node -> MiB of its file


def add_arguments(parser):
    """The options that choose rows."""
    group = parser.add_argument_group("part together", "The whole part takes hours. These options choose its tables and rows.")
    group.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES, metavar="TABLE", help=" ".join(TABLES))
    group.add_argument("--nodes", nargs="+", type=int, choices=NODES, default=list(NODES), metavar="N",
                       help="that read at once: " + ", ".join(f"{n} with links of {mbit} Mbit/s" for n, mbit in NODES.items()))
    group.add_argument("--options", nargs="+", choices=OPTIONS, default=list(OPTIONS), metavar="OPTIONS",
                       help="of the mounts that read at once: " + " ".join(OPTIONS))
    group.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY",
                       help="to read: " + ", ".join(f"{name} ({text})" for name, text in WAYS.items()))
    group.add_argument("--links", nargs="+", type=int, choices=LINKS, default=list(LINKS), metavar="MBIT",
                       help="Mbit/s of the links of one node: " + " ".join(map(str, LINKS)))
