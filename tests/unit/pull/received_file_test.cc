// A file while it is received: by one process and by several, whole and damaged.
#include "pull/received_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/sha256.h"
#include "pull/received_note.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Verdict = ReceivedFile::Verdict;

constexpr std::size_t kSize = kPieceBytes + 5;  // two pieces

std::string content_of(std::size_t size) {
  std::string content(size, '\0');
  for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>('a' + i % 23);
  return content;
}

HubFile wanted_of(const std::string& content, const std::string& path = "sub/model.bin") {
  return {path, content.size(), std::string(40, 'a'), sha256(as_bytes(content))};
}

struct Place {
  std::unique_ptr<ReceivedFile> open(const HubFile& wanted) const {
    return must(ReceivedFile::open(files, notes, wanted));
  }
  std::size_t notes_left() const { return must(list_directory(notes)).size(); }
  std::string stored(const std::string& path) const {
    std::ifstream in(dir.path() + "/files/" + path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TempDir dir;
  SafePath root = must(SafePath::open_owned(dir.path()));
  SafePath files = root / "files", notes = root / "notes";
  bool made = make_directory(files).ok() && make_directory(notes).ok();
};

void receive(ReceivedFile& file, Pieces pieces, const std::string& content, std::size_t bytes_max = kSize) {
  const Range missing = file.missing(pieces);
  must(file.write(pieces, as_bytes(content.substr(missing.offset, std::min<std::size_t>(missing.length, bytes_max)))));
  must(file.note(pieces));
}

void receive(ReceivedFile& file, std::size_t piece, const std::string& content, std::size_t bytes_max = kSize) {
  receive(file, Pieces{piece, 1}, content, bytes_max);
}

// Takes one piece, as near the end of a file.
std::optional<std::size_t> take_piece(ReceivedFile& file) {
  const auto taken = file.take_pieces(1000);
  if (!taken) return std::nullopt;
  REQUIRE(taken->count == 1);
  return taken->first;
}

}  // namespace

TEST_CASE("received: pieces arrive in any order, and the whole file is verified once") {
  const Place place;
  const std::string content = content_of(kSize);
  const auto file = place.open(wanted_of(content));
  REQUIRE(take_piece(*file) == 0);
  REQUIRE(take_piece(*file) == 1);
  CHECK_FALSE(take_piece(*file));
  CHECK(must(file->hash_ready()) == Verdict::incomplete);
  receive(*file, 1, content);
  CHECK(must(file->hash_ready()) == Verdict::incomplete);
  CHECK(file->received() == 5);
  receive(*file, 0, content);
  CHECK(place.notes_left() == 1);
  CHECK(must(file->hash_ready()) == Verdict::verified);
  CHECK(must(file->hash_ready()) == Verdict::incomplete);
  CHECK(place.notes_left() == 0);
  CHECK(place.stored("sub/model.bin") == content);
}

TEST_CASE("received: a later process receives only the rest") {
  const Place place;
  const std::string content = content_of(kSize);
  const auto noted = [&](const HubFile& wanted) { return received_bytes(place.files, place.notes, wanted); };
  CHECK(noted(wanted_of(content)) == 0);
  {
    const auto file = place.open(wanted_of(content));
    receive(*file, 1, content);
    receive(*file, 0, content, 1000);
  }
  CHECK(noted(wanted_of(content)) == 1005);
  CHECK(noted(wanted_of(content_of(kSize - 1))) == 0);
  CHECK(noted(wanted_of(content, "sub")) == 0);
  CHECK(must(list_directory(place.files)) == std::vector<std::string>{"sub"});
  const auto file = place.open(wanted_of(content));
  CHECK(file->received() == 1005);
  REQUIRE(take_piece(*file) == 0);
  CHECK(file->missing({0, 1}) == Range{1000, kPieceBytes - 1000});
  CHECK_FALSE(take_piece(*file));
  receive(*file, 0, content);
  CHECK(must(file->hash_ready()) == Verdict::verified);
  CHECK(noted(wanted_of(content)) == kSize);
  const auto again = place.open(wanted_of(content));
  CHECK(again->received() == kSize);
  CHECK_FALSE(take_piece(*again));
  CHECK(must(again->hash_ready()) == Verdict::verified);
}

TEST_CASE("received: bytes that a crash damaged are received again, and those of this process are an error") {
  const Place place;
  const std::string content = content_of(100);
  {
    const auto file = place.open(wanted_of(content));
    receive(*file, 0, std::string(100, 'x'), 40);
  }
  const auto file = place.open(wanted_of(content));
  CHECK(file->received() == 40);
  receive(*file, 0, content);
  CHECK(must(file->hash_ready()) == Verdict::restarted);
  CHECK(file->received() == 0);
  REQUIRE(take_piece(*file) == 0);
  receive(*file, 0, std::string(100, 'y'));
  const auto refused = file->hash_ready();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Errc::corrupt);
  CHECK(refused.error().message.find(to_hex(sha256(as_bytes(content)))) != std::string::npos);
  REQUIRE(take_piece(*file) == 0);
  receive(*file, 0, content);
  CHECK(must(file->hash_ready()) == Verdict::verified);
}

TEST_CASE("received: a file of another commit has another size or digest, and is received again") {
  const Place place;
  const std::string before = content_of(100);
  {
    const auto file = place.open(wanted_of(before));
    receive(*file, 0, before);
    CHECK(must(file->hash_ready()) == Verdict::verified);
  }
  for (const std::string& content : {std::string(100, 'z'), std::string(200, 'z')}) {
    CAPTURE(content.size());
    const auto file = place.open(wanted_of(content));
    while (must(file->hash_ready()) != Verdict::verified)
      if (const auto piece = take_piece(*file)) receive(*file, *piece, content);
    CHECK(place.stored("sub/model.bin") == content);
  }
}

TEST_CASE("received: a file that became a pack keeps its bytes when the next commit has others of its size") {
  const Place place;
  const std::string before = content_of(100), content(100, 'z');
  {
    const auto file = place.open(wanted_of(before));
    receive(*file, 0, before);
    CHECK(must(file->hash_ready()) == Verdict::verified);
  }
  // An import gave it a second name, and was killed before the pull removed the first one.
  const std::string pack = place.dir.path() + "/pack";
  std::filesystem::create_hard_link(place.dir.path() + "/files/sub/model.bin", pack);
  const auto file = place.open(wanted_of(content));
  CHECK(must(file->hash_ready()) == Verdict::restarted);
  REQUIRE(take_piece(*file) == 0);
  receive(*file, 0, content);
  CHECK(must(file->hash_ready()) == Verdict::verified);
  CHECK(place.stored("sub/model.bin") == content);
  CHECK(read_text(pack) == before);
}

TEST_CASE("received: a directory in the place of a file, a long note, and an empty file") {
  const Place place;
  must(make_directory(place.files / "model.bin"));
  must(make_directory(place.files / "model.bin/more"));
  const std::string content = content_of(100);
  { const auto file = place.open(wanted_of(content, "model.bin")); }
  for (const auto& note : std::filesystem::directory_iterator(place.dir.path() + "/notes"))
    std::ofstream(note.path()) << std::string(1000, '\xff');
  const auto file = place.open(wanted_of(content, "model.bin"));
  CHECK(file->received() == 0);
  receive(*file, 0, content);
  CHECK(must(file->hash_ready()) == Verdict::verified);
  const auto empty = place.open(wanted_of("", "empty"));
  CHECK_FALSE(take_piece(*empty));
  CHECK(must(empty->hash_ready()) == Verdict::verified);
}

TEST_CASE("received: a file of git is verified by the SHA-1 of its blob") {
  const Place place;
  const HubFile wanted{"config.json", 6, "ce013625030ba8dba906f756967f9e9ca394464a", std::nullopt};  // "hello\n"
  const auto file = place.open(wanted);
  receive(*file, 0, "hello\n");
  CHECK(must(file->hash_ready()) == Verdict::verified);
  const auto other = place.open({"other.json", 6, wanted.git_sha1, std::nullopt});
  receive(*other, 0, "Hello\n");
  CHECK_FALSE(other->hash_ready().ok());
}

TEST_CASE("received: a file that the disk cannot hold is refused at once, and takes no space") {
  const Place place;
  HubFile wanted = wanted_of("content", "huge.bin");
  for (const std::uint64_t size : {limits::kVersionBytesMax, std::uint64_t{1} << 50U}) {
    wanted.size = size;
    const auto refused = ReceivedFile::open(place.files, place.notes, wanted);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Errc::no_space);
    CHECK(must(list_directory(place.files)).empty());
  }
}

TEST_CASE("received: a file that an import hashes is closed before its last byte counts as there") {
  const Place place;
  const std::string content = content_of(kSize);
  const HubFile wanted = wanted_of(content);
  const auto file = must(ReceivedFile::open(place.files, place.notes, wanted, HashedBy::import));
  const auto taken = file->take_piece_at(kPieceBytes + 1);
  REQUIRE(taken.has_value());
  CHECK(taken->first == 1);
  CHECK(taken->count == 1);
  CHECK_FALSE(file->take_piece_at(kPieceBytes));
  receive(*file, 1, content);
  CHECK(file->arrived(kPieceBytes) == kSize - 1);
  CHECK(file->arrived(0) == 0);
  REQUIRE(take_piece(*file) == 0);
  CHECK_FALSE(take_piece(*file));
  receive(*file, 0, content, 1000);
  CHECK(file->arrived(0) == 1000);
  CHECK(must(file->hash_ready()) == Verdict::incomplete);
  receive(*file, 0, content);
  CHECK(file->arrived(0) == kSize - 1);
  CHECK(must(file->hash_ready()) == Verdict::whole);
  CHECK(file->arrived(0) == kSize);
  CHECK(not_written(must(open_file(place.files / wanted.path, O_RDONLY)).get()));
  CHECK(must(file->hash_ready()) == Verdict::incomplete);
  CHECK(place.notes_left() == 1);
  CHECK(must(place.open(wanted)->hash_ready()) == Verdict::verified);
}

TEST_CASE("received: several pieces at once while there are many, and single ones near the end") {
  const Place place;
  const std::string content = content_of(19 * kPieceBytes + 5);  // 20 pieces
  const HubFile wanted = wanted_of(content);
  {
    const auto file = place.open(wanted);
    receive(*file, 1, content, 1000);
  }
  const auto file = place.open(wanted);
  std::vector<std::size_t> counts;
  while (auto pieces = file->take_pieces(2)) {
    counts.push_back(pieces->count);
    receive(*file, *pieces, content, content.size());
  }
  // A run of pieces ends before the second one, which has bytes.
  CHECK(counts == std::vector<std::size_t>{1, 4, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1});
  CHECK(must(file->hash_ready()) == Verdict::verified);
}

TEST_CASE("received: bytes beyond the pieces that were taken are refused, and their neighbour keeps its own") {
  const Place place;
  const std::string content = content_of(kSize);
  const auto file = place.open(wanted_of(content));
  Pieces first{0, 1};
  CHECK_FALSE(file->write(first, as_bytes(content)).ok());
  CHECK(file->missing({1, 1}) == Range{kPieceBytes, 5});
}
