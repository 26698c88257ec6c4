// Views of tensors that are not one whole extent: tied, strided, chunked, or in other files.
#include <doctest/doctest.h>

#include "fakes/pieces_format.h"
#include "publish/draft.h"
#include "unit/vfs/vfs_fixture.h"
#include "weft/store/gc.h"

namespace weft::testing {
namespace {

// 60 bytes: 0, 1, 2, ...
std::string counting() {
  std::string text;
  for (char c = 0; c < 60; ++c) text += c;
  return text;
}

Status publish_pieces(VfsFixture& f, const std::string& name, const std::string& text) {
  write_file(f.dir / name + "/m.pieces", text);
  write_file(f.dir / name + "/data.bin", counting());
  const std::vector<std::string> paths = {f.dir / name};
  WEFT_TRY(auto sources, gather_sources(paths, f.store->path()));
  WEFT_TRY(DraftFiles files, draft_files(std::move(sources), no_progress(), pieces_formats()));
  WEFT_TRY(auto import, f.store->begin_import(Durability::local));
  MountedFiles mounted = MountedFiles::of(*f.store, no_resolver());
  WEFT_CHECK(add_content(*import, files, mounted, no_progress()));
  PublishRequest request;
  request.model = name;
  WEFT_TRY(request.content, content_of(files.manifest));
  WEFT_TRY(request.manifest, encode_manifest(files.manifest));
  WEFT_CHECK(import->publish(request));
  return {};
}

// Returns the bytes after the npy header. Compares a whole read with short reads from every offset.
std::string data_of(Vfs& vfs, std::string_view path) {
  const auto file = must(vfs.open(ino_at(vfs, path)));
  const std::string all = read_all(*file);
  for (std::size_t from = 0; from < all.size(); ++from) {
    std::vector<std::byte> some(5);
    const std::size_t got = must(file->read(from, some));
    CHECK(as_text(std::span(some).first(got)) == all.substr(from, 5));
  }
  CHECK(all.starts_with("\x93NUMPY"));
  return all.substr(all.find('\n') + 1);
}

std::string bytes(std::initializer_list<int> list) {
  std::string out;
  for (const int one : list) out += static_cast<char>(one);
  return out;
}

}  // namespace

TEST_CASE("the view of a scattered tensor has its elements in C order") {
  VfsFixture f;
  must(publish_pieces(f, "m",
                      "base U8 12 - data.bin:4:12\n"
                      "tied U8 3 - data.bin:5:3\n"
                      "turned U8 3,2 1,3 data.bin:10:6\n"
                      "wide I16 2,2 1,2 data.bin:20:8\n"
                      "same U8 2,3 0,1 data.bin:41:3\n"
                      "step U8 3 2 data.bin:43:2 data.bin:30:3\n"
                      "chunks U8 4 - data.bin:50:2 data.bin:40:2\n"
                      "boxes I16 2,3 grid:0,2,0,1,4 data.bin:56:4 data.bin:0:12\n"));
  const auto data = [&](const char* name) { return data_of(*f.vfs, "tensors/m/1/" + std::string(name) + ".npy"); };
  CHECK(data("base") == bytes({4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  CHECK(data("tied") == bytes({5, 6, 7}));
  CHECK(data("turned") == bytes({10, 13, 11, 14, 12, 15}));
  CHECK(data("wide") == bytes({20, 21, 24, 25, 22, 23, 26, 27}));
  CHECK(data("chunks") == bytes({50, 51, 40, 41}));
  CHECK(data("boxes") == bytes({56, 57, 0, 1, 2, 3, 58, 59, 6, 7, 8, 9}));
  CHECK(data("same") == bytes({41, 42, 43, 41, 42, 43}));
  CHECK(data("step") == bytes({43, 30, 32}));
  CHECK(read_path(*f.vfs, "models/m/1/data.bin") == counting());
  CHECK(ino_at(*f.vfs, "layers/m/1/turned.npy") == ino_at(*f.vfs, "tensors/m/1/turned.npy"));
}

TEST_CASE("a scattered view lives as long as a version that has it") {
  VfsFixture f;
  must(publish_pieces(f, "a", "t U8 3,2 1,3 data.bin:10:6\n"));
  must(publish_pieces(f, "b", "t U8 3,2 1,3 data.bin:10:6\nu U8 1 - data.bin:30:1\n"));
  const Attr attr = must(walk(*f.vfs, "tensors/a/1/t.npy"));
  CHECK(attr.nlink == 4);
  must(publish_pieces(f, "c", "v U8 1 - .:0:1\nt U8 3,2 1,3 data.bin:10:6\nu U8 1 - data.bin:30:1\n"));
  CHECK(must(f.vfs->getattr(ino_at(*f.vfs, "tensors/b/1/t.npy"))).nlink == 6);
  CHECK(data_of(*f.vfs, "tensors/a/1/t.npy") == bytes({10, 13, 11, 14, 12, 15}));
  const Ino shared = ino_at(*f.vfs, "tensors/b/1/t.npy");
  CHECK(shared == ino_at(*f.vfs, "tensors/c/1/t.npy"));
  must(f.store->remove_version("b", 1));
  must(f.store->gc({}, no_progress()));
  CHECK(data_of(*f.vfs, "tensors/c/1/t.npy") == bytes({10, 13, 11, 14, 12, 15}));
}

TEST_CASE("the padding of boxes is not shown") {
  VfsFixture f;
  must(publish_pieces(f, "m",
                      "a U8 2,2 grid:0,2,0,1,3 data.bin:0:2 data.bin:2:4\n"
                      "b U8 2,2 grid:0,2,0,1,2 data.bin:0:2 data.bin:2:2\n"
                      "c U8 2,2 grid:0,1,3,0,3 data.bin:20:3 data.bin:30:6\n"));
  const auto data = [&](const char* name) { return data_of(*f.vfs, "tensors/m/1/" + std::string(name) + ".npy"); };
  CHECK(data("a") == bytes({0, 2, 1, 4}));
  CHECK(data("b") == bytes({0, 2, 1, 3}));
  CHECK(data("c") == bytes({20, 21, 30, 31}));
}

TEST_CASE("no container holds a scattered tensor") {
  VfsFixture f;
  must(publish_pieces(f, "m",
                      "y.t U8 4 - .:0:4\nx.t U8 3,2 1,3 data.bin:10:6\n"
                      "x.g U8 2,2 grid:0,2,0,1,2 data.bin:20:2 data.bin:30:2\n"));
  CHECK(names_in(*f.vfs, "layers/m/1") == Names{"layer.json", "x", "y", "y.safetensors"});
  CHECK(read_path(*f.vfs, "layers/m/1/x/layer.json").find("\"strides\":[1,3]") != std::string::npos);
  CHECK(read_path(*f.vfs, "layers/m/1/x/layer.json").find("\"grid\":[0,2,0,1,2]") != std::string::npos);
}

}  // namespace weft::testing
