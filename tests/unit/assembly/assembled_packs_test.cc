#include "packs/assembled.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <set>

#include "assembly/fill.h"
#include "base/sha256.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "fakes/node_fixture.h"
#include "os/sys.h"
#include "store_paths.h"
#include "testing.h"
#include "weft/progress.h"

namespace weft::testing {
namespace {

constexpr std::uint64_t kHalf = 20;

// A file of two blobs. Its number determines its bytes.
struct Numbered {
  explicit Numbered(unsigned char number, std::uint64_t size = 2 * kHalf) {
    source.id = number;
    source.size = size;
    source.where = "file " + std::to_string(number);
    bytes.assign(size, static_cast<std::byte>(number));
    std::uint64_t offset = 0;
    for (const std::uint64_t length : {kHalf, size - kHalf}) {
      const auto piece = std::span(bytes).subspan(offset, length);
      PackEntry entry;
      entry.chunks.resize(chunk_count(length));
      sha256_chunks(piece, entry.chunks);
      entry.id = {length, tree_sha256(piece)};
      entry.offset = offset;
      source.blobs.push_back(entry.id);
      entries.push_back(std::move(entry));
      offset += length;
    }
  }
  AssembledSource source;
  std::vector<std::byte> bytes;
  std::vector<PackEntry> entries;
};

struct Directory {
  TempDir top;
  std::set<PackId> pinned;
  Directory() { REQUIRE(make_directory(top / "cache").ok()); }
  std::unique_ptr<AssembledPacks> open(std::optional<std::uint64_t> bytes_max, const std::string& boot = "this boot") {
    AssembledPacks::Options options;
    options.bytes_max = bytes_max;
    options.pinned = [this] { return pinned; };
    options.boot = boot;
    return std::make_unique<AssembledPacks>(safe(top.path()), std::move(options));
  }
  std::set<std::string> names() const {
    const auto listed = list_directory(top / "cache");
    REQUIRE(listed.ok());
    std::set<std::string> names(listed->begin(), listed->end());
    for (const char* own : {"lock", "tmp", "bytes_max", "bytes_max.new"}) names.erase(own);
    return names;
  }
  std::string pack(unsigned char number) const { return pack_in(top / "cache", number); }
  std::string toc(unsigned char number) const { return toc_in(top / "cache", number); }
};

// Writes a pack of the store, and returns the bytes that it takes on the disk.
std::uint64_t write_pack(Directory& directory, std::size_t bytes) {
  static_cast<void>(make_directory(directory.top / "packs"));
  const std::string path = directory.top / "packs/1.pack";
  write_file(path, std::string(bytes, 'x'));
  const auto fd = must(open_file(path, O_RDONLY));
  REQUIRE(sync_file(fd.get(), path).ok());  // delayed allocation takes no block before
  return static_cast<std::uint64_t>(must(stat_file(path)).st_blocks) * 512;
}

Status fill_and_finish(AssembledPacks& packs, AssembledPart part, const Numbered& file) {
  WEFT_CHECK(write_exact(part.writer->fd(), 0, file.bytes, "part"));
  return packs.finish(std::move(part), file.entries);
}

void make(AssembledPacks& packs, unsigned char number, std::uint64_t size = 2 * kHalf) {
  const Numbered file(number, size);
  auto part = packs.begin(file.source, 0);
  if (!part.ok()) FAIL(part.error().message);
  REQUIRE(fill_and_finish(packs, std::move(part).value(), file).ok());
}

Errc begin_error(AssembledPacks& packs, unsigned char number, std::uint64_t size, std::uint64_t disk_bytes = 0) {
  Numbered file(number);
  file.source.size = size;
  const auto part = packs.begin(file.source, disk_bytes);
  REQUIRE_FALSE(part.ok());
  return part.error().code;
}

bool has(const AssembledPacks& packs, unsigned char number, std::uint64_t size = 2 * kHalf) {
  return packs.has(Numbered(number, size).source);
}

// Sets the time of the last use of a file, in seconds.
void use_at(const Directory& directory, unsigned char number, time_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(::utimensat(AT_FDCWD, directory.pack(number).c_str(), times, 0) == 0);
}

void flip(const std::string& path, std::uint64_t offset) {
  const auto fd = open_file(path, O_RDWR);
  REQUIRE(fd.ok());
  std::byte byte[1];
  REQUIRE(read_exact(fd->get(), offset, byte, path).ok());
  byte[0] ^= std::byte{1};
  REQUIRE(write_exact(fd->get(), offset, byte, path).ok());
}

// Runs `act` as another user who may only read the directory, and returns the result. Without root it returns true.
bool as_reader(const Directory& directory, const std::function<bool()>& act) {
  if (::geteuid() != 0) return true;
  constexpr uid_t kNobody = 65534;
  REQUIRE(::chmod(directory.top.path().c_str(), 0755) == 0);
  const pid_t reader = ::fork();
  if (reader == 0) ::_exit(::setgid(kNobody) == 0 && ::setuid(kNobody) == 0 && act() ? 0 : 1);
  int status = 0;
  ::waitpid(reader, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Runs `act` in a process that is killed before its system call number `calls`. False if it makes fewer calls.
bool killed_at(unsigned calls, const std::function<void()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    act();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  for (unsigned stop = 0; stop <= 2 * calls; ++stop) {  // a stop before and after each call
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status)) return false;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return true;
}

}  // namespace

TEST_CASE("an assembled file is found by its blobs once it is finished") {
  Directory directory;
  const auto packs = directory.open(100);
  const Numbered file(1);
  {
    auto part = packs->begin(file.source, 0);
    REQUIRE(part.ok());
    CHECK_FALSE(packs->has(file.source));
    CHECK(begin_error(*packs, 1, 40) == Errc::busy);
    CHECK(packs->usage().parts == 1);
    REQUIRE(fill_and_finish(*packs, std::move(part).value(), file).ok());
  }
  const auto found = packs->find(file.source);
  REQUIRE(found.ok());
  CHECK(found->verified);
  CHECK(found->pack->size() == 40);
  CHECK(begin_error(*packs, 1, 40) == Errc::exists);
  CHECK(packs->find(Numbered(2).source).error().code == Errc::not_found);
  Numbered other(2);
  other.source.id = 1;  // a collision of 64-bit ids
  CHECK(packs->find(other.source).error().code == Errc::corrupt);
  other = Numbered(1, 41);
  CHECK(packs->find(other.source).error().code == Errc::corrupt);
  CHECK(packs->usage().files == 1);
  CHECK(packs->usage().bytes == 40);
  CHECK(directory.names() == std::set<std::string>{pack_name(1) + ".pack", pack_name(1) + ".toc"});
}

TEST_CASE("an unfinished part is deleted") {
  Directory directory;
  const auto packs = directory.open(100);
  CHECK(packs->begin(Numbered(1).source, 0).ok());
  CHECK(directory.names().empty());
  CHECK(packs->usage().parts == 0);
}

TEST_CASE("an assembled file of an earlier boot is used only after a full verification, then by all processes") {
  Directory directory;
  make(*directory.open(100, "another boot"), 1);
  const auto packs = directory.open(100);
  const Numbered file(1);
  CHECK_FALSE(packs->find(file.source)->verified);
  CHECK_FALSE(has(*packs, 1));
  CHECK(begin_error(*packs, 1, 40) == Errc::exists);
  HookProgress stopped;
  stopped.cancel = true;
  CHECK(packs->verify(file.source, stopped).error().code == Errc::cancelled);
  CHECK_FALSE(has(*packs, 1));
  REQUIRE(packs->verify(file.source, no_progress()).ok());
  CHECK(has(*packs, 1));
  CHECK(has(*directory.open(100), 1));
  CHECK_FALSE(has(*directory.open(100, "a third boot"), 1));
  CHECK_FALSE(has(*directory.open(100, ""), 1));  // the kernel does not report a boot id
  const auto toc = read_toc(directory.toc(1));
  REQUIRE(toc.ok());
  CHECK(toc->boot == "this boot");
  CHECK(toc->entries.size() == file.entries.size());
  CHECK(toc->entries[1].chunks == file.entries[1].chunks);
  CHECK(packs->usage().parts == 0);
}

TEST_CASE("a damaged file of another boot is never used, and deleted by the process that verifies it") {
  Directory directory;
  make(*directory.open(100, "another boot"), 1);
  const auto packs = directory.open(100);
  const Numbered file(1);
  SUBCASE("its bytes") {
    flip(directory.pack(1), 39);
    CHECK_FALSE(has(*packs, 1));
    CHECK(packs->verify(file.source, no_progress()).error().code == Errc::corrupt);
    CHECK(packs->damaged() == 1);
    CHECK(directory.names().empty());
  }
  SUBCASE("its table of contents") {
    flip(directory.toc(1), 60);
    CHECK_FALSE(has(*packs, 1));
    CHECK_FALSE(packs->verify(file.source, no_progress()).ok());
  }
  SUBCASE("shorter") {
    REQUIRE(::truncate(directory.pack(1).c_str(), 39) == 0);
    CHECK_FALSE(has(*packs, 1));
    CHECK_FALSE(packs->verify(file.source, no_progress()).ok());
  }
  make(*packs, 1);
  CHECK(has(*packs, 1));
}

TEST_CASE("a process that may only read uses what it has verified, and changes nothing") {
  Directory directory;
  make(*directory.open(200, "another boot"), 1);
  make(*directory.open(200, "another boot"), 2);
  make(*directory.open(200), 3);
  flip(directory.pack(2), 7);
  const auto before = directory.names();
  CHECK(as_reader(directory, [&] {
    const auto packs = directory.open(100);
    const Numbered whole(1), damaged(2);
    return !packs->writable() && has(*packs, 3) && !has(*packs, 1) && packs->verify(whole.source, no_progress()).ok() &&
           has(*packs, 1) && packs->verify(damaged.source, no_progress()).error().code == Errc::corrupt &&
           !has(*packs, 2) && packs->find(damaged.source).error().code == Errc::corrupt &&
           !packs->begin(Numbered(4).source, 0).ok() && !packs->sweep(nullptr, false).ok();
  }));
  CHECK(directory.names() == before);
  CHECK(read_toc(directory.toc(1))->boot == "another boot");
}

TEST_CASE("one half of a file is no file, and goes with the next sweep or the next maker") {
  for (const bool pack_is_left : {true, false}) {
    Directory directory;
    const auto packs = directory.open(100);
    make(*packs, 1);
    REQUIRE(remove_file(pack_is_left ? directory.toc(1) : directory.pack(1)).ok());
    CHECK_FALSE(has(*packs, 1));
    CHECK(packs->usage().files == 0);
    SUBCASE("a sweep") {
      REQUIRE(packs->sweep(nullptr, true).ok());
      CHECK(directory.names().size() == 1);
      REQUIRE(packs->sweep(nullptr, false).ok());
      CHECK(directory.names().empty());
    }
    SUBCASE("a maker") {
      make(*packs, 1);
      CHECK(has(*packs, 1));
    }
  }
}

TEST_CASE("a process that is killed at any system call leaves both parts of a file or no file") {
  Directory directory;
  const Numbered file(1);
  const auto add = [&] { make(*directory.open(100), 1); };
  const auto remove = [&] { static_cast<void>(directory.open({})->set_bytes_max(0)); };
  const auto verify = [&] {
    static_cast<void>(directory.open(100, "a later boot")->verify(file.source, no_progress()));
  };
  const auto check = [&] {
    const auto packs = directory.open(100);
    const auto found = packs->find(file.source);
    if (found.ok()) {
      std::vector<std::byte> bytes(40);
      REQUIRE(read_exact(found->pack->fd(), 0, bytes, "found").ok());
      CHECK(bytes == file.bytes);
    }
    REQUIRE(packs->sweep(nullptr, false).ok());
    CHECK(packs->usage().parts == 0);
    CHECK(directory.names().size() == (found.ok() ? 2 : 0));
    return found.ok();
  };
  bool added = false;
  unsigned kills = 0;
  for (; !added; ++kills) {
    REQUIRE(kills < 1000);
    const bool killed = killed_at(kills, add);
    added = check();
    CHECK((killed || added));
  }
  CHECK(kills > 20);
  for (unsigned call = 0; killed_at(call, verify); ++call) CHECK(check());
  CHECK(check());
  for (unsigned call = 0; killed_at(call, remove); ++call)
    if (!check()) add();
  CHECK_FALSE(check());
}

TEST_CASE("the least recently used assembled files are evicted, but not pinned ones") {
  Directory directory;
  const auto packs = directory.open(160);
  for (unsigned char i = 1; i <= 4; ++i) make(*packs, i);
  for (unsigned char i = 1; i <= 4; ++i) use_at(directory, i, i);
  directory.pinned = {2};
  const auto open = packs->find(Numbered(1).source);
  REQUIRE(open.ok());
  make(*packs, 5, 80);
  CHECK_FALSE(has(*packs, 1));
  CHECK(has(*packs, 2));
  CHECK_FALSE(has(*packs, 3));
  CHECK(has(*packs, 4));
  CHECK(packs->evicted() == 2);
  CHECK(packs->usage().bytes == 160);
  CHECK(packs->usage().pinned_files == 1);
  CHECK(packs->usage().pinned_bytes == 40);
  // An open file keeps the bytes of an evicted pack readable.
  std::vector<std::byte> bytes(40);
  REQUIRE(read_exact(open->pack->fd(), 0, bytes, "evicted").ok());
  CHECK(bytes == Numbered(1).bytes);
  CHECK(begin_error(*packs, 6, 161) == Errc::no_space);
  CHECK(begin_error(*packs, 6, 121) == Errc::no_space);
  CHECK(packs->usage().files == 3);
}

TEST_CASE("nothing is evicted while the pins are unknown") {
  Directory directory;
  AssembledPacks::Options options;
  options.bytes_max = 50;
  options.boot = "this boot";
  bool known = true;
  options.pinned = [&known]() -> Result<std::set<PackId>> {
    if (known) return std::set<PackId>{};
    return Error{Errc::io, "the index cannot be read"};
  };
  AssembledPacks packs(safe(directory.top.path()), options);
  make(packs, 1);
  known = false;
  CHECK(begin_error(packs, 2, 40) == Errc::io);
  CHECK(packs.sweep(nullptr, false).error().code == Errc::io);
  CHECK(has(packs, 1));
}

TEST_CASE("files that are being made count") {
  Directory directory;
  const auto one = directory.open(100), other = directory.open(100);
  const auto part = one->begin(Numbered(1, 60).source, 0);
  REQUIRE(part.ok());
  CHECK(begin_error(*other, 2, 60) == Errc::no_space);
  CHECK(other->begin(Numbered(3, 40).source, 0).ok());
}

TEST_CASE("each process that adds an assembled file applies its own bound") {
  Directory directory;
  const auto wide = directory.open(100), narrow = directory.open(50);
  make(*wide, 1);
  make(*wide, 2);
  CHECK(narrow->usage().bytes == 80);  // nothing is evicted before it adds a file
  CHECK(begin_error(*narrow, 3, 60) == Errc::no_space);
  CHECK(wide->usage().bytes == 80);
  make(*narrow, 4, 50);
  CHECK(wide->usage().bytes == 50);
  make(*wide, 5, 50);
  CHECK(narrow->usage().bytes == 100);
}

TEST_CASE("the disk is not filled, and what shares its blocks is not evicted in vain") {
  Directory directory;
  const auto packs = directory.open(UINT64_MAX);
  make(*packs, 1);
  CHECK(begin_error(*packs, 2, 4096, UINT64_MAX / 2) == Errc::no_space);
  CHECK(begin_error(*packs, 2, UINT64_MAX / 2, UINT64_MAX / 4) == Errc::no_space);
  CHECK(has(*packs, 1));
  CHECK(packs->evicted() == 0);
}

TEST_CASE("a process without a bound uses the bound of the store") {
  Directory directory;
  CHECK(directory.open({})->usage().bytes_max == 0);
  write_pack(directory, 200);
  const auto packs = directory.open({});
  CHECK(packs->usage().bytes_max >= 100);
  make(*packs, 1);
  make(*packs, 2);
  REQUIRE(packs->set_bytes_max(50).ok());
  CHECK(packs->usage().bytes == 40);
  CHECK(directory.open({})->usage().bytes_max == 50);
  CHECK(directory.open(70)->usage().bytes_max == 70);
  write_file(directory.top / "cache/bytes_max", "lots");
  CHECK(directory.open({})->usage().bytes_max > 50);
}

TEST_CASE("without a bound there is half of what the packs take, one file at least, and the pinned ones") {
  Directory directory;
  auto packs = directory.open({});
  make(*packs, 1, 40'000);
  CHECK(packs->usage().bytes_max == 40'000);
  make(*packs, 2, 50'000);  // in the place of the first
  CHECK(packs->usage().files == 1);
  CHECK(has(*packs, 2, 50'000));
  const std::uint64_t taken = write_pack(directory, 300'000);
  packs = directory.open({});  // it measures the packs at once
  CHECK(packs->usage().bytes_max == taken / 2);
  make(*packs, 3, 60'000);
  CHECK(packs->usage().files == 2);
  directory.pinned = {2, 3, 4};
  CHECK(packs->usage().bytes_max == taken / 2 + 110'000);
  make(*packs, 4, 200'000);  // whatever the packs take
  CHECK(packs->usage().pinned_bytes == 310'000);
  directory.pinned = {4};
  CHECK(packs->sweep(nullptr, false)->files == 0);
  directory.pinned = {};
  for (unsigned char number = 2; number <= 4; ++number) use_at(directory, number, 100 * number);
  CHECK(packs->sweep(nullptr, false)->files == 2);  // the largest alone may stay
  CHECK(has(*packs, 4, 200'000));
}

TEST_CASE("the store's packs are measured before the directory of assembled files is locked") {
  Directory directory;
  write_pack(directory, 300'000);
  AssembledPacks::Options options;
  options.boot = "this boot";
  options.pinned = [&] {  // called under the lock: there are no packs to measure now
    std::filesystem::rename(directory.top / "packs", directory.top / "hidden");
    return std::set<PackId>{};
  };
  AssembledPacks packs(safe(directory.top.path()), options);
  make(packs, 1, 40'000);
  std::filesystem::rename(directory.top / "hidden", directory.top / "packs");
  make(packs, 2, 50'000);
  std::filesystem::rename(directory.top / "hidden", directory.top / "packs");
  CHECK(has(packs, 1, 40'000));
  CHECK(has(packs, 2, 50'000));
  CHECK(packs.sweep(nullptr, false)->files == 0);
}

TEST_CASE("whether blocks are shared is asked until it is known, and the bound is the larger one before") {
  Directory directory;
  const std::uint64_t taken = write_pack(directory, 300'000);
  AssembledPacks::Options options;
  Result<std::uint64_t> answer = Error{Errc::no_space, "the disk is full"};
  options.block_bytes = [&answer] { return answer; };
  AssembledPacks packs(safe(directory.top.path()), options);
  CHECK_FALSE(packs.block_bytes());
  CHECK(packs.usage().bytes_max > taken / 2);
  SUBCASE("they are not") {
    answer = std::uint64_t{0};
    CHECK(packs.block_bytes() == 0);
    answer = std::uint64_t{4096};
    CHECK(packs.block_bytes() == 0);
    CHECK(packs.usage().bytes_max == taken / 2);
  }
  SUBCASE("they are") {
    answer = std::uint64_t{4096};
    CHECK(packs.block_bytes() == 4096);
    CHECK(packs.usage().bytes_max > taken / 2);
  }
}

TEST_CASE("a user who may not write does not learn whether blocks are shared") {
  Directory directory;
  CHECK(sharing_block_bytes(safe(directory.top / "cache")).ok());
  if (::geteuid() != 0) return;
  CHECK(as_reader(directory, [&] {
    const auto found = sharing_block_bytes(safe(directory.top / "cache"));
    return !found.ok() && found.error().code == Errc::permission;
  }));
}

TEST_CASE("parts of makers that died go when the next one needs room") {
  Directory directory;
  const auto packs = directory.open(100);
  const pid_t maker = ::fork();
  if (maker == 0) {
    auto part = packs->begin(Numbered(1, 90).source, 0);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(maker, nullptr, 0);
  CHECK(packs->usage().parts == 1);
  SUBCASE("of another file") {
    make(*packs, 2, 90);
  }
  SUBCASE("of the same file") {
    make(*packs, 1, 90);
    CHECK(packs->has(Numbered(1, 90).source));
  }
  SUBCASE("swept") {
    CHECK(packs->sweep(nullptr, false)->parts == 1);
  }
  CHECK(packs->usage().parts == 0);
}

TEST_CASE("a sweep removes unneeded assembled files and leaves foreign files") {
  Directory directory;
  const auto packs = directory.open(100);
  for (unsigned char i = 1; i <= 2; ++i) make(*packs, i);
  write_file(directory.top / "cache/notes.txt", "not ours");
  const std::set<PackId> needed{2};
  CHECK(packs->sweep(&needed, true)->files == 1);
  CHECK(packs->usage().files == 2);
  const auto swept = packs->sweep(&needed, false);
  REQUIRE(swept.ok());
  CHECK(swept->files == 1);
  CHECK(swept->bytes == 40);
  CHECK(directory.names() == std::set<std::string>{"notes.txt", pack_name(2) + ".pack", pack_name(2) + ".toc"});
}

TEST_CASE("a link in the place of a file is not followed") {
  Directory directory;
  const auto packs = directory.open(100);
  make(*packs, 1);
  std::filesystem::rename(directory.pack(1), directory.top / "elsewhere");
  std::filesystem::create_symlink(directory.top / "elsewhere", directory.pack(1));
  CHECK_FALSE(packs->find(Numbered(1).source).ok());
}

TEST_CASE("a process that holds the directory's lock for long does not hold up a reader") {
  Directory directory;
  const auto packs = directory.open(100);
  make(*packs, 1);
  const auto lock = open_file(directory.top / "cache/lock", O_RDWR);
  REQUIRE(lock_fd(lock->get(), LockKind::exclusive, LockWait::no, "lock").ok());
  CHECK(has(*packs, 1));
}

TEST_CASE("a file is planned as whole blocks to share and ends to copy") {
  const std::vector<Run> runs{{0, 100, {nullptr, 8192}},         // shorter than a block
                              {100, 10000, {nullptr, 100}},      // same alignment: 100..4096, 4096..8192, 8192..10100
                              {10100, 9000, {nullptr, 40000}}};  // other alignment
  const FillPlan plan = plan_fill(runs, 4096);
  REQUIRE(plan.clones.size() == 1);
  CHECK(plan.clones[0].offset == 4096);
  CHECK(plan.clones[0].length == 4096);
  CHECK(plan.clones[0].place.offset == 4096);
  CHECK(plan.size == 19100);
  CHECK(plan.copied_bytes == 19100 - 4096);
  std::uint64_t copied = 0;
  for (const Run& run : plan.copies) copied += run.length;
  CHECK(copied == plan.copied_bytes);
  CHECK(plan_fill(runs, 0).clones.empty());
  CHECK(plan_fill(runs, 0).copied_bytes == 19100);
}

}  // namespace weft::testing
