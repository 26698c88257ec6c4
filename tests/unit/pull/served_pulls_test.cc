// Another node gets received bytes of the files of a pull, and nothing else.
#include "pull/served_pulls.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "drafts/pull_area.h"
#include "fakes/manual_time.h"
#include "pull/received_file.h"
#include "pull/received_note.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::string kKey(32, 'a');
constexpr std::size_t kSize = kPieceBytes + 5;  // two pieces

// A pull that has received some bytes of "sub/model.bin".
struct Pull {
  PulledAsk ask(std::uint64_t offset = 0, std::uint32_t length = kPulledBytesMax) const {
    return {kKey, wanted.path, note_of(wanted), kSize, offset, length};
  }
  void receive(std::size_t piece, std::size_t count) const {
    const auto file = must(ReceivedFile::open(area.files(), area.notes(), wanted));
    Pieces one{piece, 1};
    must(file->write(one, as_bytes(content.substr(piece * kPieceBytes, count))));
    must(file->note(one));
    must(file->hash_ready());
  }
  Errc refusal(const PulledAsk& asked) {
    const auto part = served.read(asked);
    return part.ok() ? Errc::internal : part.error().code;
  }

  TempDir dir;
  SafePath pulls = must(SafePath::open_owned(dir.path())) / kPullsFolder;
  PullArea area = must(PullArea::open(pulls, kKey, {}));
  std::string content = [] {
    const auto bytes = random_bytes(kSize, 1);
    return std::string(as_text(bytes));
  }();
  HubFile wanted{"sub/model.bin", kSize, std::string(40, 'a'), sha256(as_bytes(content))};
  ManualTime time;
  ServedPulls served{pulls, time};
};

}  // namespace

TEST_CASE("another node gets the bytes that the note names") {
  Pull pull;
  const auto lasting = pull.served.begin(kKey);
  CHECK(pull.refusal(pull.ask()) == Errc::not_found);
  pull.receive(0, 1000);
  auto part = must(pull.served.read(pull.ask()));
  CHECK(part.got == std::vector<std::uint32_t>{1000, 0});
  CHECK(as_text(part.bytes) == pull.content.substr(0, 1000));
  part = must(pull.served.read(pull.ask(900, 50)));
  CHECK(as_text(part.bytes) == pull.content.substr(900, 50));
  CHECK(must(pull.served.read(pull.ask(1000))).bytes.empty());
  CHECK(must(pull.served.read(pull.ask(kPieceBytes))).got == std::vector<std::uint32_t>{0});
  CHECK(must(pull.served.read(pull.ask(0, 0))).bytes.empty());
}

TEST_CASE("a verified file is given whole") {
  Pull pull;
  const auto lasting = pull.served.begin(kKey);
  pull.receive(0, kPieceBytes);
  pull.receive(1, 5);
  CHECK(must(list_directory(pull.area.notes())).empty());
  const auto part = must(pull.served.read(pull.ask(kPieceBytes)));
  CHECK(part.got == std::vector<std::uint32_t>{5});
  CHECK(as_text(part.bytes) == pull.content.substr(kPieceBytes));
}

TEST_CASE("a file that the import has taken, or of another size, is not there") {
  Pull pull;
  const auto lasting = pull.served.begin(kKey);
  pull.receive(0, 1000);
  auto other = pull.ask();
  other.size = kSize + 1;
  CHECK(pull.refusal(other) == Errc::not_found);
  must(remove_file(pull.area.files() / pull.wanted.path));
  CHECK(pull.refusal(pull.ask()) == Errc::not_found);
  must(pull.area.remove());
  CHECK(pull.refusal(pull.ask()) == Errc::not_found);
}

TEST_CASE("a pull is served while it lasts and an hour longer") {
  Pull pull;
  pull.receive(0, 1000);
  CHECK(pull.refusal(pull.ask()) == Errc::not_found);
  {
    const auto lasting = pull.served.begin(kKey);
    const auto another = pull.served.begin(kKey);
    pull.time.pass(std::chrono::hours(5));
    must(pull.served.read(pull.ask()));
  }
  pull.time.pass(std::chrono::minutes(59));
  must(pull.served.read(pull.ask()));
  pull.time.pass(std::chrono::minutes(2));
  CHECK(pull.refusal(pull.ask()) == Errc::not_found);
}

TEST_CASE("of ended pulls a bounded number is served") {
  Pull pull;
  pull.receive(0, 1000);
  { const auto lasting = pull.served.begin(kKey); }
  pull.time.pass(std::chrono::seconds(1));
  for (std::size_t i = 0; i < ServedPulls::kServedPullsMax; ++i) {
    std::string key = std::to_string(i);
    key.insert(0, 32 - key.size(), '0');
    const auto lasting = pull.served.begin(key);
  }
  CHECK(pull.refusal(pull.ask()) == Errc::not_found);
}

TEST_CASE("a peer opens nothing outside of the files of a pull") {
  Pull pull;
  const auto lasting = pull.served.begin(kKey);
  pull.receive(0, 1000);
  std::ofstream(pull.dir.path() + "/secret") << std::string(kSize, 's');
  for (const char* path : {"../notes/x", "/etc/passwd", "sub/../sub/model.bin", "sub//model.bin", "", "."}) {
    auto ask = pull.ask();
    ask.path = path;
    CHECK_MESSAGE(pull.refusal(ask) == Errc::invalid, path);
  }
  for (const std::string& key : {std::string("../../x"), std::string(32, 'A'), std::string(31, 'a'), std::string()}) {
    auto ask = pull.ask();
    ask.key = key;
    CHECK_MESSAGE(pull.refusal(ask) == Errc::invalid, key);
  }
  const std::string link = pull.dir.path() + "/pulls/" + kKey + "/files/link";
  std::filesystem::create_symlink(pull.dir.path() + "/secret", link);
  auto ask = pull.ask();
  ask.path = "link";
  CHECK_FALSE(pull.served.read(ask).ok());
  ask.path = "sub";
  CHECK_FALSE(pull.served.read(ask).ok());
  ask = pull.ask();
  ask.offset = kSize;
  CHECK(pull.refusal(ask) == Errc::invalid);
  ask = pull.ask(0, kPulledBytesMax + 1);
  CHECK(pull.refusal(ask) == Errc::invalid);
}

TEST_CASE("a damaged note promises no bytes") {
  Pull pull;
  const auto lasting = pull.served.begin(kKey);
  pull.receive(0, 1000);
  const std::string note = pull.dir.path() + "/pulls/" + kKey + "/notes/" + to_hex(note_of(pull.wanted));
  std::ofstream(note, std::ios::binary) << std::string(8, '\xff');
  auto part = must(pull.served.read(pull.ask()));
  CHECK(part.got == std::vector<std::uint32_t>{0, 0});
  CHECK(part.bytes.empty());
  std::filesystem::resize_file(note, 3);
  CHECK(must(pull.served.read(pull.ask())).bytes.empty());
}
