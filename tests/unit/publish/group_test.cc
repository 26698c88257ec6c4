// Publishes of a format that parses several files: the tensors of each.
#include <doctest/doctest.h>

#include "base/limits.h"
#include "fakes/node_fixture.h"
#include "fakes/pieces_format.h"
#include "publish/draft.h"

using namespace weft;
using namespace weft::testing;

namespace {

Result<Manifest> published(Fixture& f, const std::string& text) {
  write_file(f.dir / "m/sub/m.pieces", text);
  write_file(f.dir / "m/sub/a.bin", std::string(as_text(random_bytes(100, 1))));
  write_file(f.dir / "m/z.bin", "beside the directory of the main file");
  const std::vector<std::string> paths = {f.dir / "m"};
  WEFT_TRY(auto sources, gather_sources(paths, f.store->path()));
  WEFT_TRY(DraftFiles files, draft_files(std::move(sources), no_progress(), pieces_formats()));
  WEFT_TRY(auto import, f.store->begin_import(Durability::local));
  MountedFiles mounted = MountedFiles::of(*f.store, no_resolver());
  WEFT_CHECK(add_content(*import, files, mounted, no_progress()));
  WEFT_TRY(const auto bytes, encode_manifest(files.manifest));
  return decode_manifest(bytes);
}

}  // namespace

TEST_CASE("tied, strided and chunked tensors are published with the file that they lie in") {
  Fixture f;
  const auto manifest =
      published(f, "tied F32 4 - a.bin:8:16\nagain F32 2,2 - a.bin:8:16\npart U8 4 - a.bin:20:8 .:0:0\n");
  REQUIRE_FALSE(manifest.ok());  // one part is empty
  const auto good = published(f,
                              "own U8 8 - .:0:4 a.bin:50:4\ntied F32 4 - a.bin:8:16\nagain F32 2,2 1,2 a.bin:8:16\n"
                              "part U8 8 - a.bin:20:8\nlast U8 10 - a.bin:90:10\n");
  if (!good.ok()) FAIL(good.error().message);
  const File& data = good->files[0];
  const File& main = good->files[1];
  CHECK(data.path == "sub/a.bin");
  CHECK(data.extents.size() == 6);  // 0..8..28..50..54..90..100
  CHECK(data.extents[1].id.length == 20);
  CHECK(main.format == "pieces");
  CHECK(main.tensors[0].runs == std::vector<TensorRun>{{1, 0, 0, 4}, {0, 3, 0, 4}});
  CHECK(main.tensors[1].runs == std::vector<TensorRun>{{0, 1, 0, 16}});
  CHECK(main.tensors[2].runs == main.tensors[1].runs);
  CHECK(main.tensors[2].strides == Strides{1, 2});
  CHECK(main.tensors[3].runs == std::vector<TensorRun>{{0, 1, 12, 8}});
  CHECK(main.tensors[4].runs == std::vector<TensorRun>{{0, 5, 0, 10}});
  CHECK(tensor_content(*good, main, main.tensors[1]) != tensor_content(*good, main, main.tensors[2]));
}

TEST_CASE("cuts are extents of their files, and hidden tensors are kept with the reason") {
  Fixture f;
  write_file(f.dir / "m/sub/b.bin", std::string(3 * limits::kCutMin, 'b'));
  const auto manifest = published(f, "t U8 4 - a.bin:8:4\ncut b.bin:10:5000\ncut a.bin:0:100\nhidden w 7 compressed\n");
  if (!manifest.ok()) FAIL(manifest.error().message);
  CHECK(manifest->files[0].extents.size() == 3);  // 0..8..12..100
  const File& other = manifest->files[1];
  REQUIRE(other.path == "sub/b.bin");
  REQUIRE(other.extents.size() == 3);
  CHECK(other.extents[1].offset == 10);
  CHECK(other.extents[1].id.length == 5000);
  CHECK(manifest->files[2].hidden == std::vector<HiddenTensor>{{"w", 7, "compressed", {}, {}}});
}

TEST_CASE("a format reaches no file above the directory of the main one, and none that is not published") {
  Fixture f;
  for (const char* path : {"../z.bin", "/etc/passwd", "missing", "", "./a.bin"}) {
    CAPTURE(path);
    const auto manifest = published(f, "t U8 4 - " + std::string(path) + ":0:4\n");
    REQUIRE_FALSE(manifest.ok());
    CHECK(manifest.error().code == Errc::not_found);
  }
}

TEST_CASE("a tensor that leaves its file is refused") {
  Fixture f;
  const auto manifest = published(f, "t U8 4 - a.bin:98:4\n");
  REQUIRE_FALSE(manifest.ok());
  CHECK(manifest.error().message.find("a.bin: expected tensors within 100 bytes, got 4 bytes at 98") !=
        std::string::npos);
}

TEST_CASE("shards in the safetensors files of one directory are one tensor") {
  Fixture f;
  const auto shard = [](const char* offsets) {
    const std::string header = std::string(R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"w\":{\"saved_offsets\":)") +
                               offsets + R"(}}"},"w":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}})";
    return std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "abcd";
  };
  write_file(f.dir / "m/a/1.safetensors", shard("[0,0]"));
  write_file(f.dir / "m/a/2.safetensors", shard("[0,2]"));
  write_file(f.dir / "m/b/1.safetensors", shard("[0,0]"));
  const auto manifest = must(draft_manifest({f.dir / "m"}, f.store->path(), no_progress()));
  REQUIRE(manifest.files.size() == 3);
  REQUIRE(manifest.files[0].tensors.size() == 1);
  CHECK(manifest.files[0].tensors[0].grid == Borders{0, 2, 0, 2, 4});
  CHECK(manifest.files[0].tensors[0].runs == std::vector<TensorRun>{{0, 1, 0, 4}, {1, 1, 0, 4}});
  CHECK(manifest.files[1].tensors.empty());
  CHECK(manifest.files[1].extents.size() == 2);
  CHECK(manifest.files[2].tensors[0].extent == 1);
}
