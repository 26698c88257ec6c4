#include "net/session/cluster_keys.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "testing.h"

namespace weft::net {
namespace {

// Writes a key of 32 times this letter.
void write_key(const std::string& path, char letter, mode_t mode = 0600) {
  testing::write_file(path, std::string(32, letter));
  REQUIRE(::chmod(path.c_str(), mode) == 0);
}

Bytes32 id_of(const std::string& path) {
  return ClusterKey(testing::must(read_cluster_key(path))).id();
}

TEST_CASE("a key has one id, which differs from that of other keys, and proofs of its own") {
  const Secret a{random_bytes()};
  const Secret b{random_bytes()};
  CHECK(ClusterKey(a).id() == ClusterKey(a).id());
  CHECK(ClusterKey(a).id() != ClusterKey(b).id());
  CHECK(ClusterKey(a).proofs().of("node") != ClusterKey(b).proofs().of("node"));
  CHECK(!equal_in_constant_time(ClusterKey(a).id(), ClusterKey(a).psk().bytes()));
}

TEST_CASE("a ring finds both keys, and its first one proves") {
  const Secret a{random_bytes()};
  const Secret b{random_bytes()};
  const KeyRing ring(a, b);
  CHECK(ring.keys().size() == 2);
  CHECK(ring.proving().id() == ClusterKey(a).id());
  CHECK(ring.find(ClusterKey(b).id()) != nullptr);
  CHECK(ring.find(random_bytes()) == nullptr);
  const KeyRing turned = ring.proving_by(ClusterKey(b).id());
  CHECK(turned.proving().id() == ClusterKey(b).id());
  CHECK(turned.find(ClusterKey(a).id()) != nullptr);
  CHECK(KeyRing(a, a).keys().size() == 1);
}

TEST_CASE("the files beside a key are read too, in each state that a change of the key leaves") {
  const testing::TempDir dir;
  const std::string file = dir / "key";
  write_key(file, 'a');
  CHECK(testing::must(read_key_ring(file)).keys().size() == 1);
  write_key(file + ".next", 'b');
  const auto both = testing::must(read_key_ring(file));
  CHECK(both.proving().id() == id_of(file));
  CHECK(both.find(id_of(file + ".next")) != nullptr);
  write_key(file + ".previous", 'a');  // not yet used: the old key has two names
  CHECK(testing::must(read_key_ring(file)).keys().size() == 2);
  write_key(file, 'b');
  CHECK(testing::must(read_key_ring(file)).keys().size() == 2);
  write_key(file + ".next", 'c');
  const auto three = read_key_ring(file);
  REQUIRE(!three.ok());
  CHECK(three.error().code == Errc::invalid);
  CHECK(three.error().message.find("three") != std::string::npos);
}

TEST_CASE("a file beside a key that is no key, or that others can read, is refused") {
  const testing::TempDir dir;
  const std::string file = dir / "key";
  write_key(file, 'a');
  write_key(file + ".next", 'b', 0640);
  CHECK(read_key_ring(file).error().code == Errc::permission);
  testing::write_file(file + ".next", "short");
  REQUIRE(::chmod((file + ".next").c_str(), 0600) == 0);
  CHECK(read_key_ring(file).error().code == Errc::invalid);
  CHECK(read_key_ring(dir / "missing").error().code == Errc::not_found);
}

}  // namespace
}  // namespace weft::net
