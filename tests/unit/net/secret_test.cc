#include "net/session/secret.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "testing.h"

namespace weft::net {
namespace {

using Parts = std::vector<std::span<const std::byte>>;

std::string key_file(const testing::TempDir& dir, std::size_t bytes, mode_t mode) {
  std::string path = dir / "key";
  testing::write_file(path, std::string(bytes, 'k'));
  REQUIRE(::chmod(path.c_str(), mode) == 0);
  return path;
}

TEST_CASE("a key file is read when only its owner can") {
  const testing::TempDir dir;
  const auto key = read_cluster_key(key_file(dir, 64, 0600));
  REQUIRE(key.ok());
  const auto again = read_cluster_key(key_file(dir, 64, 0400));
  REQUIRE(again.ok());
  CHECK(equal_in_constant_time(key->bytes(), again->bytes()));
  const auto longer = read_cluster_key(key_file(dir, 65, 0600));
  REQUIRE(longer.ok());
  CHECK(!equal_in_constant_time(key->bytes(), longer->bytes()));
}

TEST_CASE("a key file that others can read, that is short, huge, missing or no file is refused") {
  const testing::TempDir dir;
  for (const mode_t mode : {0640U, 0604U, 0660U, 0601U}) {
    const auto refused = read_cluster_key(key_file(dir, 64, mode));
    REQUIRE(!refused.ok());
    CHECK(refused.error().code == Errc::permission);
    CHECK(refused.error().message.find("0600") != std::string::npos);
  }
  CHECK(read_cluster_key(key_file(dir, 31, 0600)).error().code == Errc::invalid);
  CHECK(read_cluster_key(key_file(dir, 4097, 0600)).error().code == Errc::invalid);
  CHECK(read_cluster_key(dir / "missing").error().code == Errc::not_found);
  CHECK(!read_cluster_key(dir.path()).ok());
}

TEST_CASE("a hash depends on key, purpose and each part, and parts do not run together") {
  const Secret zero;
  const Secret other{std::span<const std::byte, kSecretBytes>(random_bytes())};
  const auto ab = testing::as_bytes("ab");
  const auto a = testing::as_bytes("a");
  const auto b = testing::as_bytes("b");
  const Bytes32 whole = keyed_hash(zero, "p", Parts{ab});
  CHECK(whole == keyed_hash(zero, "p", Parts{ab}));
  CHECK(whole != keyed_hash(zero, "p", Parts{a, b}));
  CHECK(whole != keyed_hash(zero, "q", Parts{ab}));
  CHECK(whole != keyed_hash(other, "p", Parts{ab}));
  CHECK(keyed_hash(zero, "pa", Parts{b}) != keyed_hash(zero, "p", Parts{ab}));
}

TEST_CASE("two ephemeral keys agree; a third does not, and points of low order are refused") {
  const EphemeralKey one;
  const EphemeralKey two;
  const EphemeralKey three;
  const auto ours = one.agree(two.public_part());
  const auto theirs = two.agree(one.public_part());
  const auto others = three.agree(one.public_part());
  REQUIRE(ours.ok());
  REQUIRE(theirs.ok());
  REQUIRE(others.ok());
  CHECK(equal_in_constant_time(ours->bytes(), theirs->bytes()));
  CHECK(!equal_in_constant_time(ours->bytes(), others->bytes()));
  Bytes32 low{};
  CHECK(one.agree(low).error().code == Errc::permission);
  low[0] = std::byte{1};
  CHECK(one.agree(low).error().code == Errc::permission);
}

}  // namespace
}  // namespace weft::net
