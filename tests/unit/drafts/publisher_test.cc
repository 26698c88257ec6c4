// The publish of a draft by a rename, and the states of its folder. A shell script stands for weft(1).
#include "drafts/publisher.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>

#include <fmt/core.h>

#include "drafts/import_fields.h"
#include "drafts/publish_folder.h"
#include "os/sys.h"
#include "unit/drafts/drafts.h"

namespace weft {
namespace {

using namespace testing;
namespace fs = std::filesystem;

using Clock = DraftPublisher::Clock;

Status goes_on() {
  return {};
}

// A store, a program that stands for weft(1), and the request 7: the rename of new/x to m@.
struct Publishing {
  const TempDir dir;
  const std::unique_ptr<DraftTree> tree = must(DraftTree::open(dir.path()));
  const std::string new_dir = dir.path() + "/drafts/tree", folder = dir.path() + "/drafts/publishing/0000000000000007";
  PublishOrder order;

  Publishing() {
    order.request = 7;
    order.user = {::getuid(), ::getgid(), {}};
    order.dir = kNewIno;
    order.name = "x";
    order.model = "m";
  }

  // The program runs `script` in the draft, with the options of the import on its standard input.
  DraftPublisher publisher(const std::string& script = "exit 1") const {
    write_file(dir / "weft", "#!/bin/sh\n" + script + "\n");
    fs::permissions(dir / "weft", fs::perms::owner_all);
    return DraftPublisher(*tree, {dir.path(), dir / "weft"});
  }

  Status publish(const std::string& script = "exit 1") const { return publisher(script).publish(order, goes_on); }
  void recover() const {
    DraftPublisher one = publisher();
    one.recover(Clock::now());
    one.recover(Clock::now() + std::chrono::minutes(3));
  }

  void write_order(bool file) const {
    fs::create_directories(folder + "/held/content");
    PublishOrder written = order;
    written.file = file;
    write_file(folder + "/order", encode_fields(written));
  }
};

constexpr char kDone[] = R"(echo '{"version":1}')";

TEST_CASE("the name of a rename that publishes") {
  CHECK_FALSE(publish_name("m"));
  CHECK_FALSE(publish_name("@prod"));
  const auto plain = publish_name("m@");
  REQUIRE(plain);
  CHECK(plain->name == "m");
  CHECK(plain->tag.empty());
  CHECK(publish_name("m@prod")->tag == "prod");
  CHECK(publish_name("m@a@b")->tag == "a@b");  // the import refuses this tag
}

TEST_CASE("the facts of a draft reach the import") {
  Publishing p;
  write_file(p.new_dir + "/x/.weft.json",
             R"({"message": "two\nlines", "metrics": {"a=b": 0.5}, "tags": ["t"], "parents": ["p@1"],)"
             R"( "inherit": "b@2", "durability": "origin", "keep": 3})");
  p.order.tag = "prod";
  CHECK(p.publish("cat > '" + p.dir / "options" + "'; echo \"$@\" > '" + p.dir / "words" + "'; " + kDone).ok());
  CHECK(read_text(p.dir / "words") ==
        "import --json --quiet --store " + p.dir.path() + " " + kOptionsOnInput + " -- .\n");
  const auto options = must(decode_fields<ImportOptions>(must(JsonValue::parse(read_text(p.dir / "options")))));
  CHECK(options.name == "m");
  CHECK(options.take == Take::move);
  CHECK(options.message == "two\nlines");
  CHECK(options.metrics == std::vector<std::pair<std::string, std::string>>{{"a=b", "0.5"}});
  CHECK(options.tags == std::vector<std::string>{"prod", "t"});
  CHECK(options.parents == std::vector<std::string>{"p@1"});
  CHECK(options.inherit == "b@2");
  CHECK(options.durability == Durability::origin);
  CHECK(options.keep == 3);
  CHECK(options.find_parent == kFindParentPart);
}

TEST_CASE("a published draft is gone, and its answer stays for the kernel") {
  Publishing p;
  write_file(p.new_dir + "/x/model", "x");
  REQUIRE(p.publish(kDone).ok());
  CHECK_FALSE(fs::exists(p.new_dir + "/x"));
  CHECK_FALSE(fs::exists(p.folder + "/held/content"));
  CHECK(p.publish("exit 1").ok());  // the same request, to a later server
  p.recover();
  CHECK_FALSE(fs::exists(p.folder));
}

TEST_CASE("a failed import puts the draft back with its facts and the error") {
  Publishing p;
  write_file(p.new_dir + "/x/.weft.json", R"({"message": "m"})");
  SUBCASE("as the import answers") {
    CHECK(code_of(p.publish(R"(echo '{"error":"no_space","message":"full"}'; exit 1)")) == Errc::no_space);
    CHECK(read_text(p.new_dir + "/x/.weft.error") == "full\n");
  }
  SUBCASE("without an answer") {
    CHECK(code_of(p.publish("exit 1")) == Errc::io);
  }
  SUBCASE("after facts that are not valid") {
    write_file(p.new_dir + "/x/.weft.json", R"({"durability": "paper"})");
    CHECK(code_of(p.publish(kDone)) == Errc::invalid);
  }
  CHECK(fs::exists(p.new_dir + "/x/.weft.error"));
  CHECK(fs::exists(p.new_dir + "/x/.weft.json"));
  CHECK_FALSE(fs::exists(p.folder));
}

TEST_CASE("state held: the import starts, or recover() puts the draft back") {
  Publishing p;
  p.write_order(false);
  SUBCASE("a request") {
    CHECK(p.publish(kDone).ok());
  }
  SUBCASE("no request") {
    p.recover();
    CHECK(fs::exists(p.new_dir + "/x"));
    CHECK_FALSE(fs::exists(p.folder));
  }
}

TEST_CASE("state dead: the import starts again, with the facts") {
  Publishing p;
  p.write_order(false);
  write_file(p.folder + "/.weft.json", R"({"message": "kept"})");
  write_file(p.folder + "/answer", R"({"vers)");
  CHECK(p.publish("cat > '" + p.dir / "options" + "'; " + kDone).ok());
  CHECK(read_text(p.dir / "options").find("kept") != std::string::npos);
}

TEST_CASE("state in doubt: the import starts again, and only once") {
  Publishing p;
  write_file(p.new_dir + "/x/model", "x");
  const std::string doubt =
      fmt::format(R"({{"error":"unreachable","message":"weftd did not answer; {}"}})", kOutcomeUnknown);
  const auto first_and_then = [&](const std::string& then) {
    return fmt::format("echo \"$6\" >> '{0}'\nif [ $(wc -l < '{0}') = 1 ]; then echo '{1}'; exit 1; fi\n{2}",
                       p.dir / "runs", doubt, then);
  };
  SUBCASE("of this server") {
    CHECK(p.publish(first_and_then(kDone)).ok());
    CHECK_FALSE(fs::exists(p.new_dir + "/x"));
  }
  SUBCASE("of an earlier server") {
    p.write_order(false);
    write_file(p.folder + "/answer", doubt);
    write_file(p.dir / "runs", std::string(kOptionsOnInput) + "\n");
    CHECK(p.publish(first_and_then(kDone)).ok());
  }
  SUBCASE("the second import fails") {
    CHECK(code_of(p.publish(first_and_then(R"(echo '{"error":"busy","message":"no"}'; exit 1)"))) == Errc::busy);
    CHECK(read_text(p.new_dir + "/x/.weft.error") == fmt::format("no; {}\n", kOutcomeUnknown));
  }
  SUBCASE("both are in doubt") {
    CHECK(code_of(p.publish(first_and_then("echo '" + doubt + "'; exit 1"))) == Errc::unreachable);
    CHECK(fs::exists(p.new_dir + "/x/model"));
  }
  CHECK(read_text(p.dir / "runs") == fmt::format("{}\n{}\n", kOptionsOnInput, kAwaitDaemon));
}

TEST_CASE("state begun: a later server waits for the import") {
  Publishing p;
  p.write_order(false);
  Fd lock = must(open_file(p.folder + "/lock", O_RDWR | O_CREAT, 0600));
  REQUIRE(lock_fd(lock.get(), LockKind::exclusive, LockWait::no, "lock").ok());
  int waits = 0;
  const auto end_it = [&] {
    if (++waits == 3) write_file(p.folder + "/answer", R"({"version":1})");
    if (waits == 3) lock.reset();
    return Status();
  };
  CHECK(p.publisher("exit 1").publish(p.order, end_it).ok());
  CHECK(waits == 3);
}

TEST_CASE("states empty and ordered: the draft moves in, or recover() deletes the folder") {
  Publishing p;
  write_file(p.new_dir + "/x/model", "x");
  p.write_order(false);
  fs::remove(p.folder + "/held/content");
  SUBCASE("ordered") {}
  SUBCASE("empty") {
    fs::remove(p.folder + "/order");
  }
  SUBCASE("a request") {
    CHECK(p.publish(kDone).ok());
    CHECK_FALSE(fs::exists(p.new_dir + "/x"));
  }
  p.recover();
  CHECK_FALSE(fs::exists(p.folder));
}

TEST_CASE("a server died before the file had moved in") {
  Publishing p;
  p.write_order(true);
  SUBCASE("it comes back once the import has failed") {
    write_file(p.new_dir + "/x", "x");
    CHECK(code_of(p.publish()) == Errc::io);
    CHECK(must(stat_file(p.new_dir + "/x")).st_size == 1);
    CHECK(fs::exists(p.new_dir + "/x.weft.error"));
  }
  SUBCASE("and is gone by now") {
    CHECK(os_error_of(p.publish()) == ENOENT);
  }
  CHECK_FALSE(fs::exists(p.folder));
}

TEST_CASE("the requests of two mounts have the same numbers") {
  Publishing p;
  write_file(p.new_dir + "/x", "x");
  fs::create_directories(p.folder + "first/held");
  write_file(p.folder + "first/answer", R"({"version":1})");
  const auto publish = [&](const std::string& mount) {
    return DraftPublisher(*p.tree, {p.dir.path(), "/bin/false", false, "", mount}).publish(p.order, goes_on);
  };
  CHECK(publish("first").ok());  // as an earlier server answered it
  CHECK(code_of(publish("second")) == Errc::io);
}

TEST_CASE("a publish that was cut short is put back unless a server works on it") {
  Publishing p;
  p.write_order(false);
  Fd in_work = must(open_file(p.folder + "/servers", O_RDWR | O_CREAT, 0600));
  const auto is_back = [&] { return fs::exists(p.new_dir + "/x"); };
  REQUIRE(lock_fd(in_work.get(), LockKind::shared, LockWait::no, "servers").ok());
  p.recover();
  CHECK(!is_back());
  in_work.reset();
  p.publisher().recover(Clock::now());
  CHECK(!is_back());
  p.recover();
  CHECK(is_back());
  CHECK(!fs::exists(p.folder));
}

TEST_CASE("a new server leaves a folder to the request that the kernel sends again") {
  Publishing p;
  fs::create_directories(p.folder + "/held");
  SUBCASE("of a version that was published long ago") {
    write_file(p.folder + "/answer", R"({"version":1})");
  }
  SUBCASE("of a draft that is not published") {
    p.write_order(false);
  }
  DraftPublisher server = p.publisher(kDone);
  server.recover(Clock::now() + std::chrono::hours(30));
  CHECK(fs::exists(p.folder));
  CHECK_FALSE(fs::exists(p.new_dir + "/x"));
  CHECK(server.publish(p.order, goes_on).ok());
}

TEST_CASE("a later server learns which rename a publish answers") {
  Publishing p;
  write_file(p.new_dir + "/x", "x");
  p.order.thread = 9;
  p.order.to = kNewIno;
  p.order.tag = "prod";
  REQUIRE(p.publish(kDone).ok());
  const auto begun = [&p] {
    const auto all = p.publisher().begun_before();
    REQUIRE(all.size() == 1);
    CHECK(all[0].published);
    return all[0].order;
  };
  const PublishOrder before = begun();
  CHECK(before.thread == 9);
  CHECK(before.to == kNewIno);
  CHECK(before.tag == "prod");
  CHECK(before.file);
  CHECK(before.answered == 0);
  REQUIRE(p.publisher().answer(before, 8).ok());
  CHECK(begun().answered == 8);
}

TEST_CASE("only the publishes of a thread and of this mount are known to a later server") {
  Publishing p;
  SUBCASE("no thread") {}
  SUBCASE("another mount") {
    p.order.thread = 9;
    p.order.request = 6;
  }
  p.write_order(false);
  CHECK(p.publisher().begun_before().empty());
}

TEST_CASE("a publish that runs out of time puts the draft back and says why") {
  Publishing p;
  write_file(p.new_dir + "/x/model", "x");
  const auto over = [] { return Status(Error{Errc::timed_out, "too slow"}); };
  CHECK(code_of(p.publisher("exec sleep 60").publish(p.order, over)) == Errc::timed_out);
  CHECK(read_text(p.new_dir + "/x/.weft.error") == "too slow\n");
  CHECK(fs::exists(p.new_dir + "/x/model"));
  CHECK_FALSE(fs::exists(p.folder));
}

TEST_CASE("the locks of a publish are for the mount's user alone") {
  Publishing p;
  write_file(p.new_dir + "/x", "x");
  REQUIRE(p.publish(kDone).ok());
  for (const char* file : {"/lock", "/servers", "/order", "/answer"})
    CHECK((must(stat_file(p.folder + file)).st_mode & 0777U) == 0600);
}

TEST_CASE("a checkpoint is published and stays") {
  Publishing p;
  write_file(p.new_dir + "/run/.weft.json", R"({"model": "m", "each": "*", "when": "done"})");
  write_file(p.new_dir + "/run/step-1/deep/model", "x");
  write_file(p.new_dir + "/run/step-1/done", "x");
  const DraftFound run = must(p.tree->lookup(kNewIno, "run"));
  p.order.dir = run.ino;
  p.order.stays = {must(p.tree->lookup(run.ino, "step-1")).ino, 5'000'000'006};
  DraftPublisher publisher = p.publisher("cat > '" + p.dir / "options" + "'; find . -type f | sort > '" +
                                         p.dir / "files" + R"('; echo '{"model":"m","version":3}')");
  PublishFolder folder;
  REQUIRE(publisher.take_staying(p.order, folder, false).ok());
  PublishFolder second;
  PublishOrder again = p.order;
  CHECK(code_of(publisher.take_staying(again, second, false)) == Errc::busy);
  REQUIRE(publisher.publish_staying(p.order, folder, goes_on).ok());
  CHECK(read_text(p.dir / "files") == "./deep/model\n./done\n");
  CHECK(read_text(p.new_dir + "/run/step-1/.weft.published") == "m@3\n");
  CHECK(nanoseconds(must(stat_file(p.new_dir + "/run/step-1/.weft.published")).st_mtim) == 5'000'000'006);
  CHECK(must(decode_fields<ImportOptions>(must(JsonValue::parse(read_text(p.dir / "options"))))).take == Take::share);
  CHECK(fs::is_empty(p.dir.path() + "/drafts/publishing"));
}

}  // namespace
}  // namespace weft
