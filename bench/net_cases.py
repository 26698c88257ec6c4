"""The rows of parts `together` and `swarm` of the net bench, by the names that the command line uses."""

TABLES = ["at-once", "best", "one-node", "serving"]
NODES = {4: 200, 8: 200, 16: 100}  # nodes that read at once -> Mbit/s of each link, each way
OPTIONS = {"default": None, "fetch": "cold=fetch", "stream": "cold=stream"}  # of the mount
WAYS = {"cat": "one file by cat", "load_file": "one file by load_file", "shards": "32 shards in turn by cat"}
LINKS = {1: 4, 5: 16, 20: 64, 100: 256, 1000: 1024, 10000: 1024}  # Mbit/s of the links of one node -> MiB of its file
SIZES, SIZES_DEFAULT = [64, 256, 1024], [256, 64]  # MiB of a model of part swarm
TROUBLES = {"late": "one begins every 0.5 s", "slow": "one with 50 Mbit/s", "killed": "one killed at half",
            "cut": "one killed at half, and its link cut before, without a reset", "directory": "the directory node killed at half",
            "groups": "two groups of four with 200 Mbit/s between them",
            "locations": "two groups of four with 200 Mbit/s between them, and each node says its group"}

OTHERS = {"origin": "an origin of 25 MB/s is the only holder, 4 and 8 nodes",
          "readers": "a MiB that each of 8 nodes waits for, and small reads of one more node"}


def add_arguments(parser):
    """The options that choose rows."""
    group = parser.add_argument_group("parts together and swarm",
                                      "Each whole part takes hours. These options choose its tables and rows.")
    group.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES, metavar="TABLE",
                       help="of part together: " + " ".join(TABLES))
    group.add_argument("--nodes", nargs="+", type=int, choices=NODES, metavar="N",
                       help="that read at once: " + ", ".join(f"{n} with links of {mbit} Mbit/s" for n, mbit in NODES.items())
                       + "; if none is named, all in part swarm, 8 and 16 in part together")
    group.add_argument("--options", nargs="+", choices=OPTIONS, default=list(OPTIONS), metavar="OPTIONS",
                       help="of the mounts that read at once: " + " ".join(OPTIONS))
    group.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY",
                       help="to read: " + ", ".join(f"{name} ({text})" for name, text in WAYS.items()))
    group.add_argument("--links", nargs="+", type=int, choices=LINKS, default=list(LINKS), metavar="MBIT",
                       help="of part together, Mbit/s of the links of one node: " + " ".join(map(str, LINKS)))
    group.add_argument("--sizes", nargs="*", type=int, choices=SIZES, default=SIZES_DEFAULT, metavar="MIB",
                       help="of part swarm, of the model: " + " ".join(map(str, SIZES)) + "; no number leaves the table out")
    group.add_argument("--troubles", nargs="*", choices=TROUBLES, default=list(TROUBLES), metavar="TROUBLE",
                       help="of part swarm: " + ", ".join(f"{name} ({text})" for name, text in TROUBLES.items())
                       + "; no name leaves the table out")
    group.add_argument("--others", nargs="*", choices=OTHERS, default=list(OTHERS), metavar="TABLE",
                       help="of part swarm, more tables: " + ", ".join(f"{name} ({text})" for name, text in OTHERS.items())
                       + "; no name leaves them out")
