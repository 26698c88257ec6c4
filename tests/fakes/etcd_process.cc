#include "fakes/etcd_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "os/sys.h"

namespace weft::testing {
namespace {

constexpr const char* kServer = "/usr/bin/etcd";
constexpr const char* kClient = "/usr/bin/etcdctl";
constexpr auto kStartMax = std::chrono::seconds(30);

Fd listening_socket(std::uint16_t& port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw std::runtime_error("no free port");
  port = ntohs(address.sin_port);
  return fd;
}

// Reserves both ports at once, so that they differ.
std::pair<std::uint16_t, std::uint16_t> free_ports() {
  std::pair<std::uint16_t, std::uint16_t> ports;
  Fd first = listening_socket(ports.first);
  Fd second = listening_socket(ports.second);
  return ports;
}

bool takes_connections(std::uint16_t port) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

pid_t start_program(const char* program, const std::vector<std::string>& arguments, const std::string& log) {
  std::vector<char*> argv{const_cast<char*>(program)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t parent = ::getpid();
  pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::dup2(fd, 1);
  ::dup2(fd, 2);
  if (::getppid() == parent) ::execv(program, argv.data());
  ::_exit(127);
}

}  // namespace

EtcdProcess::EtcdProcess(std::vector<std::string> arguments, Wire wire)
    : wire_(wire), arguments_(std::move(arguments)) {
  if (wire_ == Wire::tls) make_certificate();
  auto [client, peer] = free_ports();
  port_ = client;
  endpoint_ = (wire_ == Wire::tls ? "https" : "http") + std::string("://127.0.0.1:") + std::to_string(client);
  peer_ = "http://127.0.0.1:" + std::to_string(peer);
  start();
}

void EtcdProcess::make_certificate() {
  int status = 0;
  ::waitpid(start_program("/usr/bin/openssl",
                          {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                           "-keyout", key(), "-out", certificate(), "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                           "subjectAltName=IP:127.0.0.1", "-addext", "extendedKeyUsage=serverAuth,clientAuth"},
                          dir_ / "log"),
            &status, 0);
  if (status != 0) throw std::runtime_error("openssl fails: " + read_text(dir_ / "log"));
  for (const std::string& word : {std::string("--cert-file"), certificate(), std::string("--key-file"), key(),
                                  std::string("--trusted-ca-file"), certificate(), std::string("--client-cert-auth")})
    arguments_.push_back(word);
}

void EtcdProcess::start() {
  std::vector<std::string> arguments{"--data-dir",
                                     dir_ / "data",
                                     "--listen-client-urls",
                                     endpoint_,
                                     "--advertise-client-urls",
                                     endpoint_,
                                     "--listen-peer-urls",
                                     peer_,
                                     "--initial-advertise-peer-urls",
                                     peer_,
                                     "--initial-cluster",
                                     "default=" + peer_,
                                     "--log-level",
                                     "error",
                                     "--heartbeat-interval",  // there is no other member to wait for
                                     "10",
                                     "--election-timeout",
                                     "100"};
  arguments.insert(arguments.end(), arguments_.begin(), arguments_.end());
  pid_ = start_program(kServer, arguments, dir_ / "log");
  auto end = std::chrono::steady_clock::now() + kStartMax;
  // etcd accepts connections before it answers. A refused client would only retry after a second. For etcd 3.5 an etcd
  // with an alarm is not healthy, although it answers.
  while (!takes_connections(port_) || !(run_control({"endpoint", "health"}) || run_control({"get", "ready"}))) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_ || std::chrono::steady_clock::now() > end)
      throw std::runtime_error("etcd does not start: " + read_text(dir_ / "log"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void EtcdProcess::kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void EtcdProcess::restart() {
  kill();
  start();
}

void EtcdProcess::forget() {
  kill();
  std::filesystem::remove_all(dir_ / "data");
}

void EtcdProcess::save(const std::string& name) {
  kill();
  std::filesystem::copy(dir_ / "data", dir_ / name, std::filesystem::copy_options::recursive);
  start();
}

void EtcdProcess::set_back(const std::string& name) {
  forget();
  std::filesystem::copy(dir_ / name, dir_ / "data", std::filesystem::copy_options::recursive);
  start();
}

void EtcdProcess::pause() {
  ::kill(pid_, SIGSTOP);
  ::waitpid(pid_, nullptr, WUNTRACED);  // a busy machine may delay the stop
}

void EtcdProcess::resume() {
  ::kill(pid_, SIGCONT);
}

bool EtcdProcess::run_control(const std::vector<std::string>& arguments) const {
  std::vector<std::string> all{"--endpoints", endpoint_};
  if (wire_ == Wire::tls)
    for (const std::string& word :
         {std::string("--cacert"), certificate(), std::string("--cert"), certificate(), std::string("--key"), key()})
      all.push_back(word);
  all.insert(all.end(), arguments.begin(), arguments.end());
  int status = 0;
  ::waitpid(start_program(kClient, all, dir_ / "log"), &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void EtcdProcess::control(const std::vector<std::string>& arguments) const {
  if (!run_control(arguments)) throw std::runtime_error("etcdctl fails: " + read_text(dir_ / "log"));
}

}  // namespace weft::testing
