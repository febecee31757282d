# Take Knapper away again on Windows: .\uninstall.ps1 [-Yes] [-DryRun]; notes, journal and settings stay.
# It was written beside uninstall.sh, and never run on Windows.
param([switch]$Yes, [switch]$DryRun)
$ErrorActionPreference = "Stop"

function Say([string]$Text) { Write-Host "uninstall: $Text" }
function Invoke-Step([string]$Program, [string[]]$Arguments) {
    if ($DryRun) { Say "would run: $Program $($Arguments -join ' ')"; return }
    & $Program @Arguments
}

$home_ = Join-Path $env:LOCALAPPDATA "Programs\knapper"
$knap = (Get-Command knap -ErrorAction SilentlyContinue).Source
if (-not $knap) { $knap = Join-Path $home_ "Scripts\knap.exe" }
$settings = ""
if (Test-Path -LiteralPath $knap) {
    $settings = & $knap config path
    Invoke-Step $knap @("service", "uninstall")
    $names = (& $knap config --json | Out-String | ConvertFrom-Json).settings.PSObject.Properties.Name
    foreach ($name in $names) {
        if ($name -match "^vaults\.(.*)\.path$") { Invoke-Step $knap @("plugin", "uninstall", "--vault", $Matches[1]) }
    }
    Invoke-Step $knap @("mcp", "uninstall", "--all")
}
if (-not $Yes -and -not $DryRun -and (Read-Host "uninstall: Remove the program itself? [y/N]") -notmatch "^(y|yes)$") {
    Say "the program stays; .\uninstall.ps1 -Yes removes it"
    exit 0
}
if ((Get-Command uv -ErrorAction SilentlyContinue) -and ((& uv tool list) -match "^knapper ")) { Invoke-Step "uv" @("tool", "uninstall", "knapper") }
if ((Get-Command pipx -ErrorAction SilentlyContinue) -and ((& pipx list --short) -match "^knapper ")) { Invoke-Step "pipx" @("uninstall", "knapper") }
if (Test-Path -LiteralPath $home_) {
    if (-not $DryRun) { Remove-Item -LiteralPath $home_ -Recurse -Force }
    Say "removed $home_"
}
Say "what stays: your notes; the settings in $settings; the index and the journal in the state folder"
Say "beside the settings of MCP clients stay copies of how they were"
