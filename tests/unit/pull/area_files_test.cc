// A reader finds the bytes of a file that a pull has received.
#include "pull/area_files.h"

#include <doctest/doctest.h>

#include <string>

#include "base/sha256.h"
#include "drafts/pull_area.h"
#include "os/sys.h"
#include "pull/pull_names.h"
#include "pull/received_file.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::string kEndpoint = "https://hub.example";
const HubName kRepository{"org/m", VersionKind::model};

struct World {
  TempDir dir;
  SafePath pulls = must(SafePath::open_owned(dir.path())) / kPullsFolder;
  std::string content = std::string(as_text(random_bytes(2 * kPieceBytes + 100, 1)));
  HubFile wanted{"sub/m.bin", content.size(), std::string(40, 'a'), sha256(as_bytes(content))};

  PullArea area() const { return must(PullArea::open(pulls, hub_pull_key(kEndpoint, kRepository), {})); }
  void receive(const PullArea& area, std::size_t piece, std::size_t bytes) const {
    const auto file = must(ReceivedFile::open(area.files(), area.notes(), wanted, HashedBy::import));
    Pieces one{piece, 1};
    must(file->write(one, as_bytes(content).subspan(piece * kPieceBytes, bytes)));
    must(file->note(one));
  }
  std::string read(std::uint64_t offset, std::size_t length, std::uint64_t since_ns = 0) const {
    std::string out(length, '?');
    const AreaFiles files(pulls, kEndpoint, since_ns);
    out.resize(must(files.read(kRepository, wanted, offset, std::as_writable_bytes(std::span(out)))));
    return out;
  }
};

}  // namespace

TEST_CASE("a reader gets the run of received bytes, also over the end of a piece") {
  World world;
  CHECK(world.read(0, 10).empty());
  const PullArea area = world.area();
  CHECK(world.read(0, 10).empty());
  world.receive(area, 0, kPieceBytes);
  world.receive(area, 1, 1000);
  CHECK(world.read(0, 10) == world.content.substr(0, 10));
  CHECK(world.read(kPieceBytes - 5, 10) == world.content.substr(kPieceBytes - 5, 10));
  CHECK(world.read(kPieceBytes + 990, 100) == world.content.substr(kPieceBytes + 990, 10));
  CHECK(world.read(kPieceBytes + 1000, 100).empty());
  CHECK(world.read(2 * kPieceBytes, 100).empty());
  world.receive(area, 2, 100);
  CHECK(world.read(2 * kPieceBytes + 50, 1000) == world.content.substr(2 * kPieceBytes + 50));
  CHECK(world.read(world.content.size(), 1).empty());
}

TEST_CASE("a file of another content, of another size, without a note, and an old one count as absent") {
  World world;
  const PullArea area = world.area();
  world.receive(area, 0, 1000);
  CHECK(world.read(0, 10).size() == 10);
  CHECK(world.read(0, 10, now_ns()).empty());
  HubFile wanted = world.wanted;
  world.wanted.sha256 = sha256(as_bytes(std::string("other")));
  CHECK(world.read(0, 10).empty());
  world.wanted = wanted;
  --world.wanted.size;
  CHECK(world.read(0, 10).empty());
  world.wanted.path = "../m.bin";
  std::byte one{};
  CHECK_FALSE(AreaFiles(world.pulls, kEndpoint, 0).read(kRepository, world.wanted, 0, std::span(&one, 1)).ok());
}
