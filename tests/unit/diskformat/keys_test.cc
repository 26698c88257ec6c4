// Keys of the index, and the names of what a store keeps.
#include "diskformat/keys.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>

#include "diskformat/pack_names.h"
#include "diskformat/uuid.h"

using namespace weft;

TEST_CASE("keys sort as their numbers do") {
  CHECK(key_of(255) < key_of(256));
  CHECK(file_key(1, 0xffffffff) < file_key(2, 0));
  CHECK(blob_key({5, Digest{{0xff}}}) < blob_key({256, Digest{}}));
  CHECK(blob_key({5, Digest{{1}}}) < blob_key({5, Digest{{2}}}));
  CHECK(blob_length(blob_key({5, Digest{{1}}})) == 5);
  CHECK(number_at("short", 0) == 0);
  CHECK(split_name("a/b/c") == std::pair<std::string_view, std::string_view>{"a/b", "c"});
  const std::string key = held_key(3, {4, 6});
  CHECK(holder_at(key) == Holder{4, 6});
  CHECK(decode_held(key, encode_held(key, 9)) == 9);
  CHECK_FALSE(decode_held(held_key(3, {4, 7}), encode_held(key, 9)));
  CHECK(held_key(3, {4, 6}) < held_key(3, {5, 0}));
  CHECK(held_key(3, {5, 0}) < held_key(4, {1, 0}));
  ViewKey view{ContentId{5, Digest{{1}}}, DType::u8, {2, 3}, ""};
  ViewKey other = view;
  other.shape = {3, 2};
  CHECK(view_key(view) != view_key(other));
  other = view;
  other.shape.clear();
  other.descr = view_key(view).substr(0, 24);
  CHECK(view_key(view) != view_key(other));
}

TEST_CASE("the name of a pack tells its id and its kind") {
  for (const PackKind kind : {PackKind::blobs, PackKind::manifests}) {
    const PackId pack = new_pack_id(kind);
    CHECK(kind_of_pack(pack) == kind);
    CHECK(pack_of_name(pack_name(pack) + ".toc", ".toc") == pack);
  }
  CHECK(pack_name(0xab) == "00000000000000ab");
  CHECK(pack_of_name("00000000000000ab.pack", ".pack") == 0xab);
  for (const std::string_view other : {"", ".pack", "ab.pack", "00000000000000ab", "00000000000000ab.toc",
                                       "000000000000000g.pack", "000000000000000ab.pack", "00000000000000ab.pack.new"})
    CHECK_FALSE(pack_of_name(other, ".pack"));
}

TEST_CASE("an id of a store has one text") {
  const std::string text = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
  const Uuid uuid = parse_uuid(text).value();
  CHECK(uuid.high == 0x6fa459eaee8a4ca4);
  CHECK(uuid.low == 0x894edb77e160355e);
  CHECK(uuid_text(uuid) == text);
  for (const std::string_view other : {"", "6fa459eaee8a4ca4894edb77e160355e", "6FA459EA-EE8A-4CA4-894E-DB77E160355E",
                                       "6fa459ea-ee8a-4ca4-894e-db77e160355", "6fa459ea-ee8a-4ca4-894e-db77e160355g"})
    CHECK_FALSE(parse_uuid(other));
  const std::string made = random_uuid();
  CHECK(parse_uuid(made).has_value());
  CHECK(made[14] == '4');
  CHECK(made != random_uuid());
}
