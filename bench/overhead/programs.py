# SPDX-License-Identifier: Apache-2.0
"""The programs of bench/overhead/run, and how much work each is given: some 5 s of it, where `scale` is 1, on the machine
of docs/performance.md."""
import glob
import os
import shutil

from workloads import HERE, Command, Nginx, Postgres, Redis, write_c, write_lines

# The seven of bench/overhead/run; bench/overhead/switch has perl, too: of all of them it allocates most.
NAMES = ("python3", "clang", "redis", "nginx", "postgres", "sort", "xz")


def make_python3(_, scale):
    return Command("python3", ["/usr/bin/python3", "-S", f"{HERE}/../programs/busy.py", str(max(1, round(13 * scale)))])


def make_clang(work, scale):
    write_c(f"{work}/source.c", round(380 * scale) + 20)
    return Command("clang", [shutil.which("clang"), "-O2", "-w", "-c", f"{work}/source.c", "-o", f"{work}/source.o"])


def make_redis(work, scale):
    return Redis(work, round(100000 * scale) + 1000)


def make_nginx(work, scale):
    return Nginx(work, max(1, round(5 * scale)))


def make_postgres(work, scale):
    # What runs once in a while by itself would hit one run and not the next; and no file is left where it is killed.
    return Postgres(work, round(10000 * scale) + 200, ("-c", "autovacuum=off", "-c", "max_wal_size=4GB",
                                                       "-c", "dynamic_shared_memory_type=mmap"))


def make_sort(work, scale):
    write_lines(f"{work}/lines", round(5000000 * scale) + 2000)
    return Command("sort", ["sort", "--parallel=2", "-S", "64M", "-T", work, "-k2,2", "-k1,1n", "-o", f"{work}/sorted",
                            f"{work}/lines"], is_threaded=True)


def make_xz(work, scale):
    write_lines(f"{work}/to_pack", round(170000 * scale) + 3000)
    return Command("xz", ["xz", "-k", "-f", "-T2", "-4", "--block-size=1MiB", f"{work}/to_pack"], is_threaded=True)


def make_perl(_, scale):
    """Trees of hashes, made and thrown away."""
    return Command("perl", ["perl", "-e", "sub tree { my $d = shift; return $d ? {left => tree($d - 1), right => tree($d - 1), name => \"node $d\"} : undef }"
                                          f"for (1 .. {max(1, round(170 * scale))}) {{ my $tree = tree(14); }}"])


def missing(name):
    """What this program lacks here; None: nothing."""
    wanted = {"python3": ["/usr/bin/python3"], "redis": ["redis-server", "redis-benchmark"], "nginx": ["nginx", "wrk"],
              "postgres": ["/usr/lib/postgresql/*/bin/postgres"]}.get(name, [name])
    for one in wanted:
        if not (glob.glob(one) if "/" in one else shutil.which(one) or os.path.exists(f"/usr/sbin/{one}")):
            return one
    return None


def make(name, work, scale):
    return globals()[f"make_{name}"](work, scale)


def beginning(name):
    """A command that starts the program and does nothing with it."""
    postgres = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    return {"python3": ["/usr/bin/python3", "-S", "-c", "pass"], "redis": ["redis-server", "--version"],
            "nginx": [shutil.which("nginx") or "/usr/sbin/nginx", "-v"],
            "postgres": [postgres[-1] if postgres else "postgres", "--version"]}.get(name, [name, "--version"])
