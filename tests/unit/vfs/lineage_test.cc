// lineage/<model>/: texts, links to relatives, and the table of versions.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "unit/vfs/vfs_fixture.h"
#include "vfs/lineage_texts.h"
#include "vfs/numbers.h"
#include "weft/store/gc.h"

namespace weft::testing {

TEST_CASE("a version's lineage/ has its texts and its kin") {
  VfsFixture f;
  f.publish_model("m", 1);
  CHECK(names_in(*f.vfs, "lineage/m/1") == Names{"SHA256SUMS", "ancestors", "children", "descendants", "diff",
                                                 "graph.svg", "info.json", "log", "owners.tsv", "parents"});
  CHECK(read_path(*f.vfs, "lineage/m/1/info.json").starts_with("{\n  \"model\": \"m\",\n  \"version\": 1,"));
  CHECK(read_path(*f.vfs, "lineage/m/1/graph.svg").starts_with("<svg"));
}

TEST_CASE("SHA256SUMS of a version with many files can be read from any place") {
  VfsFixture f;
  std::string expected;
  for (int i = 1000; i < 1700; ++i) {
    const std::string number = std::to_string(i);
    const bool escape = i % 100 == 7;
    write_file(f.dir / ("source/" + number + (escape ? "\\" : "")), number);
    const std::string digest = to_hex(sha256(std::as_bytes(std::span(number))));
    expected += escape ? "\\" + digest + "  " + number + "\\\\\n" : digest + "  " + number + "\n";
  }
  f.publish({f.dir / "source"}, "m");
  CHECK(read_path(*f.vfs, "lineage/m/1/SHA256SUMS") == expected);
  const Attr attr = must(walk(*f.vfs, "lineage/m/1/SHA256SUMS"));
  CHECK(attr.size == expected.size());
  const auto file = must(f.vfs->open(attr.ino));
  for (std::size_t at = 0; at < expected.size() + 100; at += 61) {
    std::vector<std::byte> bytes(500);
    const std::size_t got = must(file->read(at, bytes));
    CHECK(as_text(std::span(bytes).first(got)) == expected.substr(std::min(at, expected.size()), bytes.size()));
  }
}

TEST_CASE("links of parents/ and children/ lead into models/") {
  VfsFixture f;
  f.publish_model("org/base", 1);
  f.publish_model("tuned", 2, {"org/base"});
  CHECK(names_in(*f.vfs, "lineage/tuned/1/parents") == Names{"org%2Fbase@1"});
  CHECK(names_in(*f.vfs, "lineage/org/base/1/children") == Names{"tuned@1"});
  const Attr up = must(walk(*f.vfs, "lineage/tuned/1/parents/org%2Fbase@1"));
  CHECK(up.type == FileType::link);
  CHECK(must(f.vfs->readlink(up.ino)) == "../../../../models/org/base/1");
  const Attr down = must(walk(*f.vfs, "lineage/org/base/1/children/tuned@1"));
  CHECK(must(f.vfs->readlink(down.ino)) == "../../../../../models/tuned/1");
  CHECK(up.ino != down.ino);
  CHECK(f.vfs->open(up.ino).error().code == Errc::invalid);
  for (const std::string name : {"tuned@1", "org%2Fbase@01", "org/base@1", "org%2fbase@1", "org%2Fbase@", "org%2Fbase"})
    CHECK(f.vfs->lookup(ino_at(*f.vfs, "lineage/tuned/1/parents"), name).error().code == Errc::not_found);
  must(f.store->remove_version("org/base", 1));
  CHECK(names_in(*f.vfs, "lineage/tuned/1/parents").empty());
}

TEST_CASE("a version with many parents has a link, a diff and a number for each") {
  VfsFixture f;
  std::vector<std::string> parents;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    f.publish_model("base", i);
    parents.push_back("base@" + std::to_string(i));
  }
  f.publish_model("kid", 100, parents);
  std::map<Ino, std::string> seen;
  for (const std::string name : {"parents", "diff"})
    for (const DirEntry& entry : list_all(*f.vfs, ino_at(*f.vfs, "lineage/kid/1/" + name))) {
      CHECK(ino_at(*f.vfs, "lineage/kid/1/" + name + "/" + entry.name) == entry.attr.ino);
      seen[entry.attr.ino] = entry.name;
    }
  CHECK(seen.size() == 40);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    const std::string name = "base@" + std::to_string(i);
    CHECK(must(f.vfs->readlink(ino_at(*f.vfs, "lineage/kid/1/parents/" + name))) ==
          "../../../../models/base/" + std::to_string(i));
    CHECK(read_path(*f.vfs, "lineage/kid/1/diff/" + name).starts_with(name + " → kid@1\n"));
    CHECK(must(f.vfs->readlink(ino_at(*f.vfs, "lineage/base/" + std::to_string(i) + "/children/kid@1"))) ==
          "../../../../models/kid/1");
  }
}

TEST_CASE("a new message is in info.json at once, and gives the log another inode") {
  VfsFixture f;
  f.publish_model("base", 1);
  f.publish_model("mid", 2, {"base"});
  const Ino info = ino_at(*f.vfs, "lineage/base/1/info.json");
  const Ino log = ino_at(*f.vfs, "lineage/mid/1/log");
  const std::string before = read_ino(*f.vfs, log);
  CHECK(read_ino(*f.vfs, info).find("said later") == std::string::npos);
  REQUIRE(f.store->describe("base", 1, {"said later", {{"loss", "0.5"}}}).ok());
  const std::string text = read_ino(*f.vfs, info);
  CHECK(text.find("said later") != std::string::npos);
  CHECK(must(f.vfs->getattr(info)).size == text.size());
  CHECK_FALSE(must(f.vfs->getattr(info)).lasting_attr);
  CHECK(ino_at(*f.vfs, "lineage/base/1/info.json") == info);
  CHECK(ino_at(*f.vfs, "lineage/mid/1/log") != log);
  CHECK(read_path(*f.vfs, "lineage/mid/1/log").find("said later") != std::string::npos);
  CHECK(read_ino(*f.vfs, log) == before);
}

TEST_CASE("a renamed model has its new name in every text and link, and the numbers of its files stay") {
  VfsFixture f;
  f.publish_model("base", 1);
  f.publish_model("mid", 2, {"base"});
  const Ino model = ino_at(*f.vfs, "models/base");
  const Ino file = ino_at(*f.vfs, "models/base/1/model.safetensors");
  const Ino log = ino_at(*f.vfs, "lineage/mid/1/log");
  const auto open = must(f.vfs->open(file));
  const std::string bytes = read_all(*open);
  CHECK(read_path(*f.vfs, "lineage/mid/1/owners.tsv").find("\tbase@1\t") != std::string::npos);
  CHECK(read_path(*f.vfs, "lineage/mid/1/diff/base@1").starts_with("base@1 → mid@1\n"));
  must(f.store->rename_model("base", "org/root"));
  CHECK(walk(*f.vfs, "models/base").error().code == Errc::not_found);
  CHECK(names_in(*f.vfs, "models") == Names{"mid", "org"});
  CHECK(ino_at(*f.vfs, "models/org/root") == model);
  CHECK(ino_at(*f.vfs, "models/org/root/1/model.safetensors") == file);
  CHECK(must(f.vfs->parent(model)) == ino_at(*f.vfs, "models/org"));
  CHECK(read_all(*open) == bytes);
  CHECK(names_in(*f.vfs, "lineage/mid/1/parents") == Names{"org%2Froot@1"});
  CHECK(must(f.vfs->readlink(ino_at(*f.vfs, "lineage/mid/1/parents/org%2Froot@1"))) == "../../../../models/org/root/1");
  CHECK(read_path(*f.vfs, "lineage/mid/1/diff/org%2Froot@1").starts_with("org/root@1 → mid@1\n"));
  for (const std::string text : {"info.json", "owners.tsv", "log", "ancestors"}) {
    CAPTURE(text);
    const std::string now = read_path(*f.vfs, "lineage/mid/1/" + text);
    CHECK(must(walk(*f.vfs, "lineage/mid/1/" + text)).size == now.size());
    CHECK(now.find("org/root") != std::string::npos);
    CHECK(now.find("base") == std::string::npos);
  }
  CHECK(ino_at(*f.vfs, "lineage/mid/1/log") != log);
  CHECK(read_path(*f.vfs, "lineage/org/root/1/info.json").find("\"org/root\"") != std::string::npos);
}

TEST_CASE("the bytes of a lineage inode never change, also after a restart") {
  VfsFixture f;
  f.publish_model("base", 1);
  f.publish_model("mid", 2, {"base"});
  const Names kin{"ancestors", "descendants", "log"};
  const Names fixed{"SHA256SUMS", "info.json", "owners.tsv"};
  std::map<Ino, std::string> seen;
  const auto look = [&] {
    for (const char* version : {"base/1", "mid/1"})
      for (const Names& names : {kin, fixed})
        for (const std::string& name : names) {
          const Attr attr = must(walk(*f.vfs, "lineage/" + std::string(version) + "/" + name));
          CHECK((kind_of(attr.ino) == InoKind::kin_file) == (&names != &fixed && names == kin));
          const std::string text = read_ino(*f.vfs, attr.ino);
          CHECK(text.size() == attr.size);
          CHECK(seen.emplace(attr.ino, text).first->second == text);
        }
  };
  look();
  CHECK(seen.size() == 12);
  f.publish_model("kid", 3, {"mid", "base"});
  look();
  CHECK(seen.size() == 12 + 2);  // plus descendants of both
  f.publish_model("stranger", 4);
  look();
  CHECK(seen.size() == 14);
  REQUIRE(f.store->remove_version("kid", 1).ok());
  look();
  CHECK(seen.size() == 14 + 2);
  REQUIRE(f.store->gc({}, no_progress()).ok());
  f.restart();
  for (const auto& [ino, text] : seen) CHECK(read_ino(*f.vfs, ino) == text);
  CHECK(f.vfs->getattr(ino_of(KinFileNumber{kKinFileCount, 1, 1})).error().code == Errc::not_found);
}

TEST_CASE("graph.svg has the present tags and new bytes at each open") {
  VfsFixture f;
  f.publish_model("base", 1);
  f.publish_model("mid", 2, {"base"});
  const Attr before = must(walk(*f.vfs, "lineage/mid/1/graph.svg"));
  const auto open = must(f.vfs->open(before.ino));
  CHECK(open->mode() == ReadMode::changing);
  CHECK_FALSE(before.lasting_attr);
  CHECK(read_path(*f.vfs, "lineage/mid/1/graph.svg").find(">prod</text>") == std::string::npos);
  REQUIRE(f.store->set_tag("base", "prod", 1).ok());
  const Attr after = must(walk(*f.vfs, "lineage/mid/1/graph.svg"));
  const std::string text = read_ino(*f.vfs, after.ino);
  CHECK(after.ino == before.ino);
  CHECK(after.mtime_ns >= before.mtime_ns);
  CHECK(after.size == text.size());
  CHECK(text.find(">prod</text>") != std::string::npos);
  CHECK(open->size() == before.size);
}

TEST_CASE("graph.svg is drawn once for each state of the index") {
  VfsFixture f;
  f.publish_model("base", 1);
  Prefetcher prefetcher;
  Versions versions(*f.store, prefetcher, {});
  LineageTexts texts(*f.store, versions);
  const Ino graph = ino_at(*f.vfs, "lineage/base/1/graph.svg");
  const auto first = must(texts.find(graph));
  CHECK(must(texts.find(graph)) == first);
  REQUIRE(f.store->set_tag("base", "prod", 1).ok());
  const auto second = must(texts.find(graph));
  CHECK(second->text != first->text);
  CHECK(must(texts.find(graph)) == second);
}

TEST_CASE("diff/ has the live parents alone") {
  VfsFixture f;
  f.publish_model("org/base", 1);
  f.publish_model("other", 2);
  f.publish_model("kid", 3, {"org/base", "other"});
  const Attr dir = must(walk(*f.vfs, "lineage/kid/1/diff"));
  CHECK(dir.type == FileType::directory);
  CHECK(must(f.vfs->parent(dir.ino)) == ino_at(*f.vfs, "lineage/kid/1"));
  CHECK(names_in(*f.vfs, "lineage/kid/1/diff") == Names{"org%2Fbase@1", "other@1"});
  const Attr file = must(walk(*f.vfs, "lineage/kid/1/diff/org%2Fbase@1"));
  CHECK(read_ino(*f.vfs, file.ino).starts_with("org/base@1 → kid@1\n"));
  CHECK(f.vfs->open(dir.ino).error().code == Errc::is_dir);
  CHECK(f.vfs->list(file.ino, 0).error().code == Errc::not_dir);
  CHECK(f.vfs->lookup(file.ino, "x").error().code == Errc::not_dir);
  CHECK(f.vfs->lookup(dir.ino, "org/base@1").error().code == Errc::not_found);
  CHECK(f.vfs->readlink(file.ino).error().code == Errc::invalid);
  REQUIRE(f.store->remove_version("org/base", 1).ok());
  CHECK(names_in(*f.vfs, "lineage/kid/1/diff") == Names{"other@1"});
  CHECK(f.vfs->lookup(dir.ino, "org%2Fbase@1").error().code == Errc::not_found);
}

TEST_CASE("versions.tsv has a line for each live version, and changes with each publish, tag and removal") {
  VfsFixture f;
  f.publish_model("org/m", 1);
  f.publish_model("org/m", 2, {"org/m@1"}, {"best", "prod"});
  const auto lines = [&] {
    std::vector<std::vector<std::string>> out;
    const Attr attr = must(walk(*f.vfs, "lineage/org/m/versions.tsv"));
    CHECK(kind_of(attr.ino) == InoKind::versions_table);
    const auto file = must(f.vfs->open(attr.ino));
    CHECK(file->mode() == ReadMode::changing);
    const std::string text = read_all(*file);
    CHECK(text.size() == attr.size);
    CHECK(text.ends_with("\n"));
    for (const std::string_view line : split(std::string_view(text).substr(0, text.size() - 1), '\n')) {
      auto& cells = out.emplace_back();
      for (const std::string_view cell : split(line, '\t')) cells.emplace_back(cell);
      CHECK(cells.size() == 8);
    }
    return out;
  };
  auto table = lines();
  REQUIRE(table.size() == 3);
  CHECK(table[0] == Names{"version", "time", "bytes", "new_bytes", "tags", "metrics", "parents", "message"});
  CHECK(table[1][0] == "1");
  CHECK(table[1][2] == table[1][3]);
  CHECK(table[1][4].empty());
  CHECK(table[1][6].empty());
  CHECK(table[2][0] == "2");
  CHECK(table[2][2] == table[1][2]);
  CHECK(table[2][3] == "16384");  // bytes of the one tensor that differs
  CHECK(table[2][4] == "best,prod");
  CHECK(table[2][6] == "org/m@1");
  must(f.store->set_tag("org/m", "best", 1));
  table = lines();
  CHECK(table[1][4] == "best");
  CHECK(table[2][4] == "prod");
  must(f.store->remove_version("org/m", 1));
  table = lines();
  REQUIRE(table.size() == 2);
  CHECK(table[1][0] == "2");
  CHECK(table[1][3] == table[1][2]);  // the formerly shared bytes are its own
}

TEST_CASE("a tab or a line break in a cell of versions.tsv is escaped") {
  VfsFixture f;
  write_model(f.dir / "source", 1);
  ImportOptions options;
  options.paths = {f.dir / "source"};
  options.name = "m";
  options.message = "one\ttwo\nthree\\four \u202a";
  options.metrics = {{"loss", "0.5"}, {"note", "a\\b"}};
  must(import_paths(*f.store, options, no_progress()));
  const std::string text = read_path(*f.vfs, "lineage/m/versions.tsv");
  CHECK(text.ends_with("\tloss=0.5,note=a\\\\b\t\tone\\ttwo\\nthree\\\\four \\xe2\\x80\\xaa\n"));
}

TEST_CASE("numbers of lineage/ that were never given are refused") {
  VfsFixture f;
  f.publish_model("m", 1);
  for (const Ino low :
       {Ino{0}, Ino{1}, Ino{77} << kKinClockBits, Ino{7} << 57U, Ino{3} << 60U | Ino{9} << 28U, (Ino{1} << 62U) - 1})
    CHECK_FALSE(f.vfs->open(kKinFileBit | low).ok());
  for (const InoKind kind : {InoKind::lineage_entry, InoKind::parent_link, InoKind::child_link, InoKind::diff,
                             InoKind::versions_table, InoKind::hub_number, InoKind::hub_snapshot, InoKind::hub_commit,
                             InoKind::hub_commit_link, InoKind::hub_view_snapshot}) {
    CAPTURE(static_cast<int>(kind));
    CHECK(f.vfs->getattr(ino_of(kind, 0, 99)).error().code == Errc::not_found);
    CHECK(f.vfs->getattr(ino_of(kind, (1U << 25U) - 1, 1)).error().code == Errc::not_found);
  }
  for (const InoKind kind :
       {InoKind::layers, InoKind::tensors, InoKind::safetensors, InoKind::lineage, InoKind::hub_model,
        InoKind::hub_refs, InoKind::hub_snapshots, InoKind::hub_main, InoKind::hub_tag, InoKind::hub_dir,
        InoKind::hub_link, InoKind::hub_view_ref, InoKind::hub_view_dir, InoKind::hub_view_link}) {
    CAPTURE(static_cast<int>(kind));
    for (const Ino stored : {Ino{0}, kRootIno, kReadmeIno, ino_at(*f.vfs, "models/m/1"), limits::kStoredInoMax})
      CHECK(f.vfs->getattr(ino_of(kind, stored)).error().code == Errc::not_found);
  }
  for (Ino kind = static_cast<Ino>(InoKind::hub_commit_link) + 1; kind < 32; ++kind)
    if (kind != static_cast<Ino>(InoKind::safetensors))
      CHECK(f.vfs->getattr(kind << kInoKindShift | 1U).error().code == Errc::not_found);
}

}  // namespace weft::testing
