// datasets/ and records/, and data sets in lineage/ and hub/.
#include <doctest/doctest.h>

#include <string>

#include "unit/vfs/publish_dataset.h"
#include "unit/vfs/vfs_fixture.h"
#include "vfs/numbers.h"
#include "weft/store/gc.h"

namespace weft::testing {
namespace {

struct DatasetFixture : VfsFixture {
  void publish_dataset(const std::string& name, const DatasetSpec& spec, const std::vector<std::string>& tags = {}) {
    testing::publish_dataset(*store, dir, name, spec, tags);
  }
  std::string read(std::string_view path) { return read_path(*vfs, path); }
  Errc failure(std::string_view path) {
    const auto found = walk(*vfs, path);
    return found.ok() ? Errc::internal : found.error().code;
  }
};

DatasetSpec some_files() {
  DatasetSpec spec;
  spec.small = {{"train/1.txt", "one"}, {"train/2.txt", "two"}, {"empty", ""}};
  spec.large = {{"train/large.bin", std::string(100'000, 'L')}};
  spec.containers["train/t.tar"] = {"0123456789", {{"x/1.jpg", 2, 3}, {"z", 8, 2}}};
  return spec;
}

}  // namespace

TEST_CASE("datasets/ and records/ name data sets, and models/, layers/ and tensors/ models; lineage/ has both") {
  DatasetFixture f;
  f.publish_model("org/m", 1);
  f.publish_dataset("org/d", some_files(), {"prod"});
  f.publish_dataset("sets/e", some_files());
  CHECK(names_in(*f.vfs, "datasets") == Names{"org", "sets"});
  CHECK(names_in(*f.vfs, "records") == Names{"org", "sets"});
  CHECK(names_in(*f.vfs, "models") == Names{"org"});
  CHECK(names_in(*f.vfs, "lineage") == Names{"org", "sets"});
  CHECK(names_in(*f.vfs, "datasets/org") == Names{"d"});
  CHECK(names_in(*f.vfs, "datasets/org/d") == Names{"1", "latest", "prod"});
  CHECK(names_in(*f.vfs, "records/org/d") == Names{"1", "latest", "prod"});
  for (const char* tree : {"models", "layers", "tensors", "safetensors"}) {
    CHECK(names_in(*f.vfs, std::string(tree) + "/org") == Names{"m"});
    for (const char* name : {"/org/d", "/sets", "/sets/e"})
      CHECK(f.failure(tree + std::string(name)) == Errc::not_found);
  }
  for (const char* tree : {"datasets", "records"}) CHECK(f.failure(std::string(tree) + "/org/m") == Errc::not_found);
  CHECK(names_in(*f.vfs, "lineage/org") == Names{"d", "m"});
  CHECK(must(f.vfs->readlink(ino_at(*f.vfs, "datasets/org/d/latest"))) == "1");
  CHECK(must(f.vfs->readlink(ino_at(*f.vfs, "records/org/d/prod"))) == "1");
  must(f.store->remove_version("sets/e", 1));
  CHECK(names_in(*f.vfs, "datasets") == Names{"org"});
  CHECK(f.failure("records/sets") == Errc::not_found);
}

TEST_CASE("datasets/ has a new time once a name appears there, or goes, that models have too") {
  DatasetFixture f;
  f.publish_model("org/m", 1);
  const auto time_ns = [&f] { return must(walk(*f.vfs, "datasets")).mtime_ns; };
  const std::uint64_t before = time_ns();
  f.publish_dataset("org/d", some_files());
  const std::uint64_t first = time_ns();
  CHECK(first > before);
  f.publish_dataset("org/e", some_files());
  CHECK(time_ns() == first);
  must(f.store->remove_version("org/d", 1));
  CHECK(time_ns() == first);
  must(f.store->remove_version("org/e", 1));
  CHECK(time_ns() > first);
}

TEST_CASE("the files of a data set are read byte for byte, small ones from their bundles") {
  DatasetFixture f;
  DatasetSpec spec = some_files();
  for (int i = 0; i < 3000; ++i) spec.small["many/" + std::to_string(i)] = "content " + std::to_string(i);
  f.publish_dataset("d", spec);
  const auto check = [&] {
    for (const auto& files : {spec.small, spec.large})
      for (const auto& file : files) {
        const auto& [path, content] = file;
        CAPTURE(file.first);
        const Attr attr = must(walk(*f.vfs, "datasets/d/1/" + path));
        CHECK(attr.size == content.size());
        CHECK(f.read("datasets/d/1/" + path) == content);
      }
  };
  check();
  f.restart();
  check();
  CHECK(names_in(*f.vfs, "datasets/d/1/many").size() == 3000);
  CHECK(names_in(*f.vfs, "datasets/d/1/train") == Names{"1.txt", "2.txt", "large.bin", "t.tar"});
  const auto file = must(f.vfs->open(ino_at(*f.vfs, "datasets/d/1/many/77")));
  std::vector<std::byte> part(4);
  CHECK(must(file->read(5, part)) == 4);
  CHECK(as_text(part) == "nt 7");
  CHECK(must(file->read(file->size(), part)) == 0);
}

TEST_CASE("attributes of a data set's files and directories never change, but for what large files own") {
  DatasetFixture f;
  f.publish_dataset("d", some_files());
  const std::uint64_t time_ns = must(f.resolve("d")).time_ns;
  for (const char* path : {"datasets/d/1/train/1.txt", "datasets/d/1/empty", "records/d/1/train/t.tar/files/x/1.jpg",
                           "records/d/1/@files/keys.txt", "records/d/1/train/t.tar/order/3/2/1.npy"}) {
    CAPTURE(path);
    const Attr attr = must(walk(*f.vfs, path));
    CHECK(attr.type == FileType::regular);
    CHECK(attr.lasting_name);
    CHECK(attr.lasting_attr);
    CHECK(attr.nlink == 1);
    CHECK(attr.mtime_ns == time_ns);
    CHECK(attr.blocks == (attr.size == 0 ? 0 : 1));
    const Attr again = must(f.vfs->getattr(attr.ino));
    CHECK(again.size == attr.size);
    CHECK(f.read(path).size() == attr.size);
  }
  for (const char* path : {"datasets/d/1", "datasets/d/1/train", "records/d/1", "records/d/1/train",
                           "records/d/1/train/t.tar", "records/d/1/train/t.tar/files/x", "records/d/1/@files/part/3"}) {
    CAPTURE(path);
    const Attr attr = must(walk(*f.vfs, path));
    CHECK(attr.type == FileType::directory);
    CHECK(attr.lasting_entries);
    CHECK(attr.lasting_attr);
    CHECK(must(f.vfs->parent(attr.ino)) == ino_at(*f.vfs, std::string(split_name(path).first)));
  }
  CHECK(must(walk(*f.vfs, "datasets/d/1/train/large.bin")).counted);
}

TEST_CASE("records of a container are parts of it, and its index is that of its table") {
  DatasetFixture f;
  f.publish_dataset("d", some_files());
  const std::string container = "records/d/1/train/t.tar";
  CHECK(names_in(*f.vfs, "records/d/1") == Names{"@files", "train"});
  CHECK(names_in(*f.vfs, "records/d/1/train") == Names{"t.tar"});
  CHECK(f.read(container + "/files/x/1.jpg") == "234");
  CHECK(f.read(container + "/keys.txt") == "x/1.jpg\nz\n");
  CHECK(f.read("records/d/1/@files/keys.txt") == "empty\ntrain/1.txt\ntrain/2.txt\n");
  CHECK(f.read(container + "/index.npy").substr(1, 5) == "NUMPY");
  CHECK(f.read(container + "/order/7/1/0.npy").size() == f.read(container + "/part/1/0.npy").size());
  CHECK(f.failure("records/d/1/train/large.bin") == Errc::not_found);
  CHECK(f.failure("records/d/1/train/1.txt") == Errc::not_found);
}

TEST_CASE("info.json of a data set counts small files and records, and lists none") {
  DatasetFixture f;
  f.publish_dataset("d", some_files());
  const std::string info = f.read("lineage/d/1/info.json");
  CHECK(info.find("\"kind\": \"data set\"") != info.npos);
  CHECK(info.find("\"small_files\": 3") != info.npos);
  CHECK(info.find(R"({"path":"train/t.tar","records":2,"left_out":0})") != info.npos);
  CHECK(info.find("\"path\":\"train/large.bin\"") != info.npos);
  for (const char* unlisted : {"1.txt", "1.jpg", "tensors\": ["}) CHECK(info.find(unlisted) == info.npos);
}

TEST_CASE("an open record is read after its version was removed, and the version's numbers go") {
  DatasetFixture f;
  f.publish_dataset("d", some_files());
  const Ino ino = ino_at(*f.vfs, "records/d/1/train/t.tar/files/z");
  const Opened opened = must(f.vfs->open_with_attr(ino));
  must(f.store->remove_version("d", 1));
  must(f.store->gc({}, no_progress()));
  CHECK(read_all(*opened.file) == "89");
  CHECK(f.failure("datasets/d") == Errc::not_found);
}

TEST_CASE("hub/ has data sets by their kind, with links to the files of datasets/") {
  DatasetFixture f;
  f.publish_model("org/m", 1);
  f.publish_dataset("org/d", some_files());
  CHECK(names_in(*f.vfs, "hub") == Names{"datasets--org--d", "models--org--m"});
  CHECK(f.failure("hub/models--org--d") == Errc::not_found);
  CHECK(f.failure("hub/datasets--org--m") == Errc::not_found);
  const std::string hash = f.read("hub/datasets--org--d/refs/main");
  const std::string snapshot = "hub/datasets--org--d/snapshots/" + hash;
  CHECK(names_in(*f.vfs, snapshot) == names_in(*f.vfs, "datasets/org/d/1"));
  for (const std::string file : {"train/2.txt", "train/large.bin"}) {
    const Attr link = must(walk(*f.vfs, snapshot + "/" + file));
    CHECK(link.type == FileType::link);
    CHECK(must(f.vfs->readlink(link.ino)) == "../../../../../datasets/org/d/1/" + file);
    CHECK(link.size == must(f.vfs->readlink(link.ino)).size());
    CHECK(must(f.vfs->getattr(link.ino)).ino == link.ino);
    CHECK(must(walk(*f.vfs, "datasets/org/d/1/" + file)).nlink == 1);
  }
  CHECK(ino_at(*f.vfs, snapshot + "/train") != ino_at(*f.vfs, "datasets/org/d/1/train"));
  CHECK(must(f.vfs->parent(ino_at(*f.vfs, snapshot + "/train"))) == ino_at(*f.vfs, snapshot));
  for (const char* none : {"/train/large.bin/x", "/none", "/train/none"})
    CHECK_FALSE(walk(*f.vfs, snapshot + none).ok());
}

}  // namespace weft::testing
