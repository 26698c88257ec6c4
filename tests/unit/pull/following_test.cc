// A node copies what another node's pull has received, whatever that node says.
#include "pull/following.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "drafts/pull_area.h"
#include "fakes/manual_time.h"
#include "pull/pull_follower.h"
#include "pull/received_file.h"
#include "pull/received_note.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::string kKey(32, 'b');

std::string content_of(std::size_t size, unsigned seed) {
  const auto bytes = random_bytes(size, seed);
  return std::string(as_text(bytes));
}

HubFile wanted_of(const std::string& path, const std::string& content) {
  return {path, content.size(), std::string(40, 'a'), sha256(as_bytes(content))};
}

// The pull of another node: the content of files, and how many bytes of each piece it has received.
class OtherPull final : public PulledFiles {
 public:
  struct File {
    std::string content;
    std::vector<std::uint32_t> got;
  };
  Result<PulledPart> read(const PulledAsk& ask) override {
    must(check_pulled(ask));
    ++asked;
    if (lies) return lies(ask);
    const auto found = files.find(ask.path);
    if (found == files.end()) return Error{Errc::not_found, "no such file"};
    const File& file = found->second;
    PulledPart part;
    const auto first = file.got.begin() + static_cast<std::ptrdiff_t>(ask.piece());
    part.got.assign(first, first + static_cast<std::ptrdiff_t>(ask.pieces()));
    const std::uint64_t begin = ask.offset % kPieceBytes;
    const std::uint64_t there = *first > begin ? *first - begin : 0;
    const auto bytes = as_bytes(file.content).subspan(ask.offset, std::min<std::uint64_t>(there, ask.length));
    part.bytes.assign(bytes.begin(), bytes.end());
    given += part.bytes.size();
    return part;
  }
  std::map<std::string, File> files;
  std::function<Result<PulledPart>(const PulledAsk&)> lies;
  std::size_t asked = 0;
  std::uint64_t given = 0;
};

struct World {
  Following follow(std::vector<HubFile> wanted) { return {area, kKey, wanted, time}; }
  // Returns the bytes that the next pull on this node finds.
  std::uint64_t received(const HubFile& wanted) const {
    return must(ReceivedFile::open(area.files(), area.notes(), wanted))->received();
  }
  ReceivedFile::Verdict verdict(const HubFile& wanted) const {
    return must(must(ReceivedFile::open(area.files(), area.notes(), wanted))->hash_ready());
  }

  TempDir dir;
  PullArea area = must(PullArea::open(must(SafePath::open_owned(dir.path())) / kPullsFolder, kKey, {}));
  ManualTime time;
  OtherPull other;
  std::function<bool()> never = [] { return false; };
};

const std::string kContent = content_of(2 * kPieceBytes + 100, 1);  // three pieces

}  // namespace

TEST_CASE("a follower has what the other node has received, and then the whole file") {
  World world;
  const HubFile wanted = wanted_of("sub/model.bin", kContent);
  Following following = world.follow({wanted});
  must(following.step(world.other, world.never));
  CHECK(following.copied() == 0);
  world.other.files["sub/model.bin"] = {kContent, {kPieceBytes, 5000, 0}};
  world.time.pass(Following::kLater);
  must(following.step(world.other, world.never));
  CHECK(following.copied() == kPieceBytes + 5000);
  world.other.files["sub/model.bin"].got = {kPieceBytes, kPieceBytes, 100};
  world.time.pass(Following::kSoon);
  must(following.step(world.other, world.never));
  CHECK(following.copied() == kContent.size());
  CHECK(world.other.given == kContent.size());
  const std::size_t asked = world.other.asked;
  world.time.pass(Following::kLater);
  must(following.step(world.other, world.never));
  CHECK(world.other.asked == asked);
  CHECK(world.verdict(wanted) == ReceivedFile::Verdict::verified);
}

TEST_CASE("a follower goes on with what its own area has") {
  World world;
  const HubFile wanted = wanted_of("m.bin", kContent);
  {
    const auto file = must(ReceivedFile::open(world.area.files(), world.area.notes(), wanted));
    Pieces one{0, 1};
    must(file->write(one, as_bytes(kContent.substr(0, 1 << 20))));
    must(file->note(one));
  }
  world.other.files["m.bin"] = {kContent, {1 << 20, 0, 100}};
  Following following = world.follow({wanted});
  must(following.step(world.other, world.never));
  CHECK(world.other.given == 100);
  CHECK(world.received(wanted) == (1 << 20) + 100);
}

TEST_CASE("a follower takes over: it copies until there is nothing new") {
  World world;
  const HubFile wanted = wanted_of("m.bin", kContent);
  world.other.files["m.bin"] = {kContent, {kPieceBytes, 77, 0}};
  Following following = world.follow({wanted_of("absent.bin", "x"), wanted, wanted_of("empty", "")});
  must(following.finish(world.other, world.never));
  CHECK(following.copied() == kPieceBytes + 77);
  CHECK(world.received(wanted) == kPieceBytes + 77);
}

TEST_CASE("a follower rests after an error and asks again later") {
  World world;
  world.other.lies = [](const PulledAsk&) { return Error{Errc::unreachable, "away"}; };
  Following following = world.follow({wanted_of("a.bin", "abc"), wanted_of("b.bin", "abc")});
  must(following.step(world.other, world.never));
  CHECK(world.other.asked == 1);
  world.time.pass(Following::kLater);
  must(following.step(world.other, world.never));
  CHECK(world.other.asked == 1);
  world.time.pass(Following::kRest);
  world.other.lies = nullptr;
  world.other.files["a.bin"] = {"abc", {3}};
  must(following.step(world.other, world.never));
  CHECK(following.copied() == 3);
}

TEST_CASE("a busy node is asked again soon") {
  World world;
  world.other.lies = [](const PulledAsk&) { return Error{Errc::busy, "later"}; };
  Following following = world.follow({wanted_of("a.bin", "abc")});
  const Deadline next = must(following.step(world.other, world.never));
  CHECK(next == world.time.now() + Following::kLater);
}

TEST_CASE("answers out of bounds are not written") {
  World world;
  const HubFile wanted = wanted_of("m.bin", kContent);
  const auto part_of = [](std::vector<std::uint32_t> got, std::size_t bytes) {
    return PulledPart{std::move(got), std::vector<std::byte>(bytes)};
  };
  const std::vector<std::function<Result<PulledPart>(const PulledAsk&)>> lies{
      [&](const PulledAsk&) { return part_of({}, 0); },
      [&](const PulledAsk&) {
        return part_of({1, 2}, 0);
      },
      [&](const PulledAsk&) {
        return part_of({1, 2, 3, 4}, 0);
      },
      [&](const PulledAsk&) {
        return part_of({kPieceBytes + 1, 0, 0}, 0);
      },
      [&](const PulledAsk&) {
        return part_of({0, 0, 101}, 0);
      },
      [&](const PulledAsk& ask) {
        return part_of({10, 0, 0}, ask.length + std::size_t{1});
      },
      [&](const PulledAsk& ask) {
        return part_of({10, 0, 0}, ask.length == 0 ? 0 : 11);
      }};
  for (const auto& lie : lies) {
    world.other.lies = lie;
    Following following = world.follow({wanted});
    must(following.step(world.other, world.never));
    CHECK(following.copied() == 0);
  }
  CHECK(world.received(wanted) == 0);
}

TEST_CASE("a node that promises bytes and gives none does not hold a follower") {
  World world;
  world.other.lies = [](const PulledAsk& ask) { return PulledPart{std::vector<std::uint32_t>(ask.pieces(), 100), {}}; };
  Following following = world.follow({wanted_of("m.bin", kContent)});
  must(following.step(world.other, world.never));
  CHECK(world.other.asked <= 4);
  must(following.finish(world.other, world.never));
  CHECK(following.copied() == 0);
}

TEST_CASE("wrong bytes are found by their digest, and the file is received again") {
  World world;
  const HubFile wanted = wanted_of("m.bin", kContent);
  std::string wrong = kContent;
  wrong[kPieceBytes] ^= 1;
  world.other.files["m.bin"] = {wrong, {kPieceBytes, kPieceBytes, 100}};
  {
    Following following = world.follow({wanted});
    must(following.step(world.other, world.never));
    CHECK(following.copied() == kContent.size());
  }
  CHECK(world.verdict(wanted) == ReceivedFile::Verdict::restarted);
  CHECK(world.received(wanted) == 0);
}

TEST_CASE("a follower that is stopped leaves what it has copied") {
  World world;
  const HubFile wanted = wanted_of("m.bin", kContent);
  world.other.files["m.bin"] = {kContent, {kPieceBytes, kPieceBytes, 100}};
  const std::function<bool()> after_two = [&] { return world.other.asked >= 2; };
  {
    Following following = world.follow({wanted});
    must(following.step(world.other, after_two));
    CHECK(following.copied() == kPulledBytesMax);
  }
  CHECK(world.received(wanted) == kPulledBytesMax);
}

TEST_CASE("a round ends after many files without news") {
  World world;
  std::vector<HubFile> wanted;
  for (std::size_t i = 0; i < 2 * Following::kQuietMax; ++i)
    wanted.push_back(wanted_of(std::to_string(1000 + i), "abc"));
  Following following = world.follow(wanted);
  must(following.step(world.other, world.never));
  CHECK(world.other.asked == Following::kQuietMax);
}

TEST_CASE("a pull that waits copies, and ends with its files closed") {
  TempDir dir;
  const SafePath pulls = must(SafePath::open_owned(dir.path())) / kPullsFolder;
  const HubFile wanted = wanted_of("m.bin", kContent);
  OtherPull other;
  other.files["m.bin"] = {kContent, {1000, 0, 0}};
  PullFollower follower(pulls, kKey, {wanted});
  const std::function<bool()> never = [] { return false; };
  {
    const PullArea taken = must(PullArea::open(pulls, kKey, {}));  // by another pull on this node
    follower.step(other, never);
    CHECK(other.asked == 0);
  }
  follower.step(other, never);
  CHECK(other.given == 1000);
  other.files["m.bin"].got = {kPieceBytes, 0, 0};
  follower.finish(&other, never);
  CHECK(other.given == kPieceBytes);
  CHECK(follower.failure().empty());
  const PullArea* area = must(follower.area({}));
  CHECK(must(ReceivedFile::open(area->files(), area->notes(), wanted))->received() == kPieceBytes);
}

TEST_CASE("a follower whose disk fails copies nothing more") {
  TempDir dir;
  const SafePath pulls = must(SafePath::open_owned(dir.path())) / kPullsFolder;
  HubFile wanted = wanted_of("m.bin", kContent);
  wanted.size = std::uint64_t{1} << 50U;
  OtherPull other;
  other.lies = [](const PulledAsk& ask) {
    return PulledPart{std::vector<std::uint32_t>(ask.pieces(), kPieceBytes), {}};
  };
  PullFollower follower(pulls, kKey, {wanted});
  const std::function<bool()> never = [] { return false; };
  follower.step(other, never);
  CHECK_FALSE(follower.failure().empty());
  const std::size_t asked = other.asked;
  follower.step(other, never);
  CHECK(other.asked == asked);
}
