#include "http/client/curl.h"

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <mutex>

namespace weft {
namespace {

// A peer that loses its network does not close its connections. So an idle connection is probed every second after 3 s,
// and a connection whose data is not acknowledged ends after 6 s.
constexpr int kIdleSeconds = 3;
constexpr int kProbeSeconds = 1;
constexpr int kProbes = 3;
constexpr unsigned kSilentMs = 6'000;

// Servers send these alerts to a client without a certificate, or with one that they do not trust. OpenSSL names them
// so.
constexpr std::string_view kCertificateAlerts[] = {"alert bad certificate", "alert certificate required",
                                                   "alert unknown ca", "alert certificate unknown",
                                                   "alert certificate expired"};

int set_socket(void* /*user*/, curl_socket_t fd, curlsocktype /*purpose*/) {
  const int on = 1;
  bool ok = setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) == 0 &&
            setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds) == 0 &&
            setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kProbeSeconds, sizeof kProbeSeconds) == 0 &&
            setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes) == 0 &&
            setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kSilentMs, sizeof kSilentMs) == 0;
  return ok ? CURL_SOCKOPT_OK : CURL_SOCKOPT_ERROR;
}

bool was_sent(CURL* handle) {
  curl_off_t sent_us = 0;
  curl_easy_getinfo(handle, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
  return sent_us > 0;
}

Errc code_of(CURL* handle, CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
      return Errc::permission;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Errc::invalid;
    case CURLE_ABORTED_BY_CALLBACK:
      return Errc::cancelled;
    case CURLE_WRITE_ERROR:
      return Errc::io;
    default:
      return was_sent(handle) ? Errc::timed_out : Errc::unreachable;
  }
}

}  // namespace

void curl_start() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

void curl_prepare(CURL* handle, const HttpOptions& options, CurlErrorText& why) {
  why.front() = '\0';
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, why.data());
  curl_easy_setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_max.count()));
  curl_easy_setopt(handle, CURLOPT_SOCKOPTFUNCTION, set_socket);
  if (options.proxies == HttpProxies::none) curl_easy_setopt(handle, CURLOPT_PROXY, "");
  if (!options.ca.empty()) curl_easy_setopt(handle, CURLOPT_CAINFO, options.ca.c_str());
  if (!options.ca_directory.empty()) curl_easy_setopt(handle, CURLOPT_CAPATH, options.ca_directory.c_str());
  if (!options.cert.empty()) curl_easy_setopt(handle, CURLOPT_SSLCERT, options.cert.c_str());
  if (!options.key.empty()) curl_easy_setopt(handle, CURLOPT_SSLKEY, options.key.c_str());
  if (options.pinned_key.empty()) return;
  curl_easy_setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_3));  // another weft answers
  curl_easy_setopt(handle, CURLOPT_PINNEDPUBLICKEY, options.pinned_key.c_str());
  curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 0L);
  curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 0L);
}

CurlHeaders curl_headers(std::span<const std::string> headers) {
  curl_slist* list = nullptr;
  for (const std::string& header : headers)
    if (curl_slist* longer = curl_slist_append(list, header.c_str()); longer != nullptr) list = longer;
  return CurlHeaders(list);
}

std::vector<std::string> json_headers(const std::string& token, const std::string& header) {
  // Without "Expect:" libcurl would wait for "100 Continue" before it sends a body over 1 MB.
  std::vector<std::string> headers = {"Content-Type: application/json", "Expect:"};
  if (!token.empty()) headers.push_back("Authorization: " + token);
  if (!header.empty()) headers.push_back(header);
  return headers;
}

Error curl_error(CURL* handle, CURLcode code, std::string_view where, const CurlErrorText& why) {
  const std::string_view text = why.data();
  for (const std::string_view alert : kCertificateAlerts)
    if (text.find(alert) != std::string_view::npos)
      return Error{Errc::permission,
                   fmt::format("{}: the server refused this client's certificate, or wants one ({})", where, alert)};
  return Error{code_of(handle, code), fmt::format("{}: {}", where, curl_easy_strerror(code))};
}

}  // namespace weft
